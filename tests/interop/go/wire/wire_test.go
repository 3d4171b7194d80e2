package wire

import (
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// script is a stream whose answers are known beforehand; behind them comes an error.
type script struct {
	grpc.BidiStreamingClient[string, string]
	answers []string
	end     error
}

func (s *script) Recv() (*string, error) {
	if len(s.answers) == 0 {
		return nil, s.end
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return &answer, nil
}

func (s *script) CloseSend() error { return nil }

func stream(end error, answers ...string) *Stream[string, string] {
	return &Stream[string, string]{Name: "Test", BidiStreamingClient: &script{answers: answers, end: end}}
}

func read(expected *Names) func(*string) error {
	return func(answer *string) error { return expected.Came(*answer) }
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("wanted an error with %q, got %v", want, err)
	}
}

func TestAllThatIsExpectedComes(t *testing.T) {
	expected := Expect("things", Numbered("it", 2))
	if err := stream(io.EOF, "it-1", "it-0").Until(expected, read(expected)); err != nil {
		t.Error(err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	expected := Expect("things", Numbered("it", 2))
	err := stream(io.EOF, "it-0").Until(expected, read(expected))
	check(t, err, `stream Test: things: 1 of 2 are missing, for example "it-1": EOF`)
}

func TestWhatComesTwiceIsAnError(t *testing.T) {
	expected := Expect("things", Numbered("it", 2))
	err := stream(io.EOF, "it-0", "it-0").Until(expected, read(expected))
	check(t, err, `things: "it-0" came twice, or was not expected`)
}

func TestWhatComesAfterTheEndOfWorkIsAnError(t *testing.T) {
	nothing := Expect("things", nil)
	check(t, stream(io.EOF, "it-0").Finish(read(nothing)), `"it-0" came twice, or was not expected`)
	if err := stream(io.EOF).Finish(read(nothing)); err != nil {
		t.Error(err)
	}
	check(t, stream(status.Error(codes.Aborted, "gone")).Finish(read(nothing)), "gone")
}

func TestAStatusIsCheckedWithItsText(t *testing.T) {
	refused := status.Error(codes.InvalidArgument, "line 7, line 9")
	if err := stream(refused, "an answer").EndsWith(codes.InvalidArgument, "line 7", "line 9"); err != nil {
		t.Error(err)
	}
	check(t, stream(refused).EndsWith(codes.NotFound), "wanted the status NotFound")
	check(t, stream(refused).EndsWith(codes.InvalidArgument, "line 8"), `wanted "line 8"`)
	check(t, RefusedWith(errors.New("other"), codes.NotFound), "wanted the status NotFound")
	check(t, RefusedWith(nil, codes.NotFound), "wanted the status NotFound")
}
