// Command older is a resource manager of the older generation of si.v1, which knows no field of the current one: it
// checks that a scheduler answers it in its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	si "licorne.test/interop/oldersi"
	"licorne.test/interop/wire"
)

const (
	rmID      = "go-older"
	partition = "default"
)

// result is what the resource manager got.
type result struct {
	Placements int `json:"placements"`
	Releases   int `json:"releases"`
}

// manager has the three streams, and the placements by UUID.
type manager struct {
	queue        string
	nodes        *wire.Stream[si.NodeRequest, si.NodeResponse]
	applications *wire.Stream[si.ApplicationRequest, si.ApplicationResponse]
	allocations  *wire.Stream[si.AllocationRequest, si.AllocationResponse]
	running      map[string]*si.Allocation
}

func main() {
	address := flag.String("address", "127.0.0.1:3333", "where the scheduler listens")
	queue := flag.String("queue", "root.leaf", "a leaf queue of the server's configuration")
	limit := flag.Duration("limit", 2*time.Minute, "how long everything may take")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	wire.Report(run(ctx, *address, *queue))
}

func run(ctx context.Context, address, queue string) (*result, error) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	m, err := connect(ctx, si.NewSchedulerClient(connection), queue)
	if err != nil {
		return nil, err
	}
	result := &result{}
	flows := []struct {
		name string
		run  func() error
	}{
		{"nodes", func() error {
			return m.addNodes(
				&si.NodeInfo{NodeID: "free", SchedulableResource: memory(100)},
				&si.NodeInfo{NodeID: "occupied", SchedulableResource: memory(100), OccupiedResource: memory(100)},
			)
		}},
		{"application", m.addApplication},
		{"asks", func() error { return m.asks(result) }},
		{"rejection", m.rejection},
		{"withdrawal", m.withdrawal},
		{"recovery", m.recovery},
		{"close", m.close},
	}
	for _, flow := range flows {
		if err := flow.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", flow.name, err)
		}
	}
	return result, nil
}

func connect(ctx context.Context, client si.SchedulerClient, queue string) (*manager, error) {
	request := &si.RegisterResourceManagerRequest{RmID: rmID, Version: "older", PolicyGroup: "queues"}
	if _, err := client.RegisterResourceManager(ctx, request); err != nil {
		return nil, err
	}
	nodes, err := client.UpdateNode(ctx)
	if err != nil {
		return nil, err
	}
	applications, err := client.UpdateApplication(ctx)
	if err != nil {
		return nil, err
	}
	allocations, err := client.UpdateAllocation(ctx)
	if err != nil {
		return nil, err
	}
	return &manager{
		queue:        queue,
		nodes:        &wire.Stream[si.NodeRequest, si.NodeResponse]{Name: "UpdateNode", BidiStreamingClient: nodes},
		applications: &wire.Stream[si.ApplicationRequest, si.ApplicationResponse]{Name: "UpdateApplication", BidiStreamingClient: applications},
		allocations:  &wire.Stream[si.AllocationRequest, si.AllocationResponse]{Name: "UpdateAllocation", BidiStreamingClient: allocations},
		running:      make(map[string]*si.Allocation),
	}, nil
}

func memory(amount int64) *si.Resource {
	return &si.Resource{Resources: map[string]*si.Quantity{"memory": {Value: amount}}}
}

// addNodes makes nodes known, and waits until each has been accepted.
func (m *manager) addNodes(nodes ...*si.NodeInfo) error {
	var names []string
	for _, node := range nodes {
		node.Action = si.NodeInfo_CREATE
		node.Attributes = map[string]string{"si/node-partition": partition}
		names = append(names, node.NodeID)
	}
	if err := m.nodes.Send(&si.NodeRequest{RmID: rmID, Nodes: nodes}); err != nil {
		return err
	}
	expected := wire.Expect("accepted nodes", names)
	return m.nodes.Until(expected, func(answer *si.NodeResponse) error {
		for _, rejected := range answer.Rejected {
			return fmt.Errorf("node %s was rejected: %s", rejected.NodeID, rejected.Reason)
		}
		for _, accepted := range answer.Accepted {
			if err := expected.Came(accepted.NodeID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *manager) addApplication() error {
	err := m.applications.Send(&si.ApplicationRequest{RmID: rmID, New: []*si.AddApplicationRequest{{
		ApplicationID: "app", QueueName: m.queue, PartitionName: partition,
		Ugi: &si.UserGroupInformation{User: "gopher"},
	}}})
	if err != nil {
		return err
	}
	expected := wire.Expect("accepted applications", []string{"app"})
	return m.applications.Until(expected, func(answer *si.ApplicationResponse) error {
		for _, rejected := range answer.Rejected {
			return fmt.Errorf("application %s was rejected: %s", rejected.ApplicationID, rejected.Reason)
		}
		for _, accepted := range answer.Accepted {
			if err := expected.Came(accepted.ApplicationID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *manager) ask(key, application string, count int32, size int64) error {
	return m.allocations.Send(&si.AllocationRequest{RmID: rmID, Asks: []*si.AllocationAsk{{
		AllocationKey: key, ApplicationID: application, PartitionName: partition,
		ResourceAsk: memory(size), MaxAllocations: count,
	}}})
}

// untilPlaced waits until asks have as many allocations more, and checks each.
func (m *manager) untilPlaced(node string, counts map[string]int) error {
	// An allocation has no name that we could know beforehand, so those of an ask are counted: key-0, key-1 and so on.
	var names []string
	for key, count := range counts {
		names = append(names, wire.Numbered(key, count)...)
	}
	expected, seen := wire.Expect("placements", names), make(map[string]int)
	return m.allocations.Until(expected, func(answer *si.AllocationResponse) error {
		if len(answer.Released)+len(answer.ReleasedAsks)+len(answer.Rejected) > 0 {
			return fmt.Errorf("wanted placements alone, got %v", answer)
		}
		for _, placed := range answer.New {
			if err := expected.Came(fmt.Sprintf("%s-%d", placed.AllocationKey, seen[placed.AllocationKey])); err != nil {
				return err
			}
			seen[placed.AllocationKey]++
			if placed.UUID == "" || m.running[placed.UUID] != nil {
				return fmt.Errorf("the placement %v has no UUID of its own", placed)
			}
			if placed.NodeID != node || placed.ApplicationID != "app" {
				return fmt.Errorf("the placement %v has the wrong node or application", placed)
			}
			m.running[placed.UUID] = placed
		}
		return nil
	})
}

// releaseAll ends each allocation by its UUID, and waits until each release has been confirmed.
func (m *manager) releaseAll() (int, error) {
	releases := &si.AllocationReleasesRequest{}
	var uuids []string
	for uuid := range m.running {
		uuids = append(uuids, uuid)
		releases.AllocationsToRelease = append(releases.AllocationsToRelease, &si.AllocationRelease{
			PartitionName: partition, ApplicationID: "app", UUID: uuid, TerminationType: si.TerminationType_STOPPED_BY_RM,
		})
	}
	if err := m.allocations.Send(&si.AllocationRequest{RmID: rmID, Releases: releases}); err != nil {
		return 0, err
	}
	expected := wire.Expect("confirmed releases", uuids)
	return len(uuids), m.allocations.Until(expected, func(answer *si.AllocationResponse) error {
		if len(answer.New)+len(answer.ReleasedAsks)+len(answer.Rejected) > 0 {
			return fmt.Errorf("wanted releases alone, got %v", answer)
		}
		for _, released := range answer.Released {
			if released.TerminationType != si.TerminationType_STOPPED_BY_RM {
				return fmt.Errorf("the release %v is not the one that was sent", released)
			}
			if err := expected.Came(released.UUID); err != nil {
				return err
			}
			delete(m.running, released.UUID)
		}
		return nil
	})
}

// asks wants one allocation of some asks and five of others, all on the node that nobody else uses.
func (m *manager) asks(result *result) error {
	counts := make(map[string]int)
	for i, key := range wire.Numbered("ask", 20) {
		counts[key] = 1 + 4*(i%2)
		if err := m.ask(key, "app", int32(counts[key]), 1); err != nil {
			return err
		}
	}
	if err := m.untilPlaced("free", counts); err != nil {
		return err
	}
	result.Placements = len(m.running)
	released, err := m.releaseAll()
	result.Releases = released
	return err
}

// rejection asks for an application that nobody has submitted.
func (m *manager) rejection() error {
	if err := m.ask("lost", "nowhere", 1, 1); err != nil {
		return err
	}
	expected := wire.Expect("rejections", []string{"lost"})
	return m.allocations.Until(expected, func(answer *si.AllocationResponse) error {
		for _, rejected := range answer.Rejected {
			if rejected.ApplicationID != "nowhere" || rejected.Reason == "" {
				return fmt.Errorf("the rejection %v is not that of the ask", rejected)
			}
			if err := expected.Came(rejected.AllocationKey); err != nil {
				return err
			}
		}
		return nil
	})
}

// withdrawal asks for two allocations where there is room for one, and withdraws what waits of the ask. That has no
// answer: when the first one has ended, an ask for the whole node shows that the second is not placed any more.
func (m *manager) withdrawal() error {
	if err := m.ask("two", "app", 2, 60); err != nil {
		return err
	}
	if err := m.untilPlaced("free", map[string]int{"two": 1}); err != nil {
		return err
	}
	err := m.allocations.Send(&si.AllocationRequest{RmID: rmID, Releases: &si.AllocationReleasesRequest{
		AllocationAsksToRelease: []*si.AllocationAskRelease{{
			PartitionName: partition, ApplicationID: "app", AllocationKey: "two",
			TerminationType: si.TerminationType_STOPPED_BY_RM,
		}},
	}})
	if err != nil {
		return err
	}
	if _, err := m.releaseAll(); err != nil {
		return err
	}
	if err := m.ask("whole", "app", 1, 100); err != nil {
		return err
	}
	if err := m.untilPlaced("free", map[string]int{"whole": 1}); err != nil {
		return err
	}
	_, err = m.releaseAll()
	return err
}

// recovery makes a node known with what runs on it, under the UUID that an earlier scheduler gave.
func (m *manager) recovery() error {
	err := m.addNodes(&si.NodeInfo{
		NodeID: "recovered", SchedulableResource: memory(10),
		ExistingAllocations: []*si.Allocation{{
			AllocationKey: "ran", UUID: "from-before", ApplicationID: "app", PartitionName: partition,
			NodeID: "recovered", ResourcePerAlloc: memory(5),
		}},
	})
	if err != nil {
		return err
	}
	if err := m.untilPlaced("recovered", map[string]int{"ran": 1}); err != nil {
		return err
	}
	if m.running["from-before"] == nil {
		return fmt.Errorf("the allocation has lost its UUID: %v", m.running)
	}
	_, err = m.releaseAll()
	return err
}

// close closes all streams and reads them to their ends.
func (m *manager) close() error {
	if err := m.nodes.CloseSend(); err != nil {
		return err
	}
	if err := m.applications.CloseSend(); err != nil {
		return err
	}
	err := m.allocations.Finish(func(answer *si.AllocationResponse) error {
		if len(answer.New)+len(answer.Rejected) > 0 {
			return fmt.Errorf("an answer that nobody asked for: %v", answer)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := m.nodes.Finish(func(*si.NodeResponse) error { return nil }); err != nil {
		return err
	}
	return m.applications.Finish(func(*si.ApplicationResponse) error { return nil })
}
