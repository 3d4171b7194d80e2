// Command current is a resource manager of the current generation of si.v1: it checks a scheduler that listens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"licorne.test/interop/si"
	"licorne.test/interop/wire"
)

// result is what one resource manager got.
type result struct {
	Nodes      int `json:"nodes"`
	Placements int `json:"placements"`
	Releases   int `json:"releases"`
}

func main() {
	address := flag.String("address", "127.0.0.1:3333", "where the scheduler listens")
	queues := flag.String("queues", "", "a file with the queue configuration to send; without one that of the server counts")
	queue := flag.String("queue", "root.leaf", "a leaf queue of the configuration that counts")
	limit := flag.Duration("limit", 2*time.Minute, "how long everything may take")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	wire.Report(run(ctx, *address, *queues, *queue))
}

func run(ctx context.Context, address, file, queue string) (map[string]*result, error) {
	queues := ""
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		queues = string(text)
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	client := si.NewSchedulerClient(connection)
	if err := checkServices(ctx, connection); err != nil {
		return nil, err
	}
	if err := checkRefusals(ctx, client, queues, queue); err != nil {
		return nil, err
	}

	// Two resource managers at once, with the same names of nodes, applications and asks.
	results := map[string]*result{"go-1": {}, "go-2": {}}
	ended := make(chan error)
	for id, result := range results {
		go func() { ended <- serve(ctx, client, id, queues, queue, result) }()
	}
	return results, errors.Join(<-ended, <-ended)
}

// flow is one thing that a resource manager does.
type flow struct {
	name string
	run  func() error
}

// serve is the life of one resource manager: it works, shuts down, and comes back with what still runs for it.
func serve(ctx context.Context, client si.SchedulerClient, id, queues, queue string, result *result) error {
	m, err := connect(ctx, client, id, queues, queue)
	if err != nil {
		return err
	}
	err = m.runAll(
		flow{"workload", func() error { return m.workload(result) }},
		flow{"rejection", m.rejection},
		flow{"draining", m.draining},
		flow{"foreign", m.foreign},
		flow{"close", m.close},
	)
	if err != nil {
		return err
	}
	again, err := connect(ctx, client, id, queues, queue)
	if err != nil {
		return err
	}
	return again.runAll(flow{"recovery", again.recovery}, flow{"close again", again.close})
}

func (m *manager) runAll(flows ...flow) error {
	for _, flow := range flows {
		if err := flow.run(); err != nil {
			return fmt.Errorf("%s: %s: %w", m.id, flow.name, err)
		}
	}
	return nil
}
