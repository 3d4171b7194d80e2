// Package wire has what the programs of both generations share: streams whose answers are checked, and the summary.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Stream is one of the streams of a resource manager.
type Stream[Q, A any] struct {
	Name string
	grpc.BidiStreamingClient[Q, A]
}

// Until reads answers until all names that are expected have come. A name that comes twice, or was not expected, is
// an error, and so is the end of the stream.
func (s *Stream[Q, A]) Until(expected *Names, read func(*A) error) error {
	for len(expected.missing) > 0 {
		answer, err := s.Recv()
		if err != nil {
			return fmt.Errorf("stream %s: %s: %w", s.Name, expected, err)
		}
		if err := read(answer); err != nil {
			return fmt.Errorf("stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// Finish closes our side, and reads what is left to the end; the scheduler has to end the stream without an error.
func (s *Stream[Q, A]) Finish(read func(*A) error) error {
	if err := s.CloseSend(); err != nil {
		return fmt.Errorf("stream %s: %w", s.Name, err)
	}
	for {
		answer, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = read(answer)
		}
		if err != nil {
			return fmt.Errorf("stream %s, after it was closed: %w", s.Name, err)
		}
	}
}

// EndsWith reads until the stream ends, and checks the status and what its text contains.
func (s *Stream[Q, A]) EndsWith(code codes.Code, texts ...string) error {
	for {
		if _, err := s.Recv(); err != nil {
			return RefusedWith(err, code, texts...)
		}
	}
}

// RefusedWith checks an error: its status, and what its text contains.
func RefusedWith(err error, code codes.Code, texts ...string) error {
	if status.Code(err) != code {
		return fmt.Errorf("wanted the status %s, got: %w", code, err)
	}
	for _, text := range texts {
		if !strings.Contains(status.Convert(err).Message(), text) {
			return fmt.Errorf("wanted %q in the text of the status, got: %w", text, err)
		}
	}
	return nil
}

// Names are those that have to come, each once.
type Names struct {
	what    string
	count   int
	missing map[string]bool
}

// Expect returns the names that have to come; what says what they are.
func Expect(what string, names []string) *Names {
	missing := make(map[string]bool)
	for _, name := range names {
		missing[name] = true
	}
	return &Names{what, len(missing), missing}
}

// Came notes that a name has come.
func (n *Names) Came(name string) error {
	if !n.missing[name] {
		return fmt.Errorf("%s: %q came twice, or was not expected", n.what, name)
	}
	delete(n.missing, name)
	return nil
}

func (n *Names) String() string {
	for name := range n.missing {
		return fmt.Sprintf("%s: %d of %d are missing, for example %q", n.what, len(n.missing), n.count, name)
	}
	return n.what + ": none is missing"
}

// Numbered returns as many names.
func Numbered(start string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", start, i)
	}
	return names
}

// Report writes the summary as one line of JSON, or ends the program with the error.
func Report(summary any, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(summary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
