package main

import (
	"context"
	"fmt"

	"licorne.test/interop/si"
	"licorne.test/interop/wire"
)

const partition = "default"

// manager is a resource manager with its three streams. It knows what runs for it.
type manager struct {
	id           string
	queue        string
	nodes        *wire.Stream[si.NodeRequest, si.NodeResponse]
	applications *wire.Stream[si.ApplicationRequest, si.ApplicationResponse]
	allocations  *wire.Stream[si.AllocationRequest, si.AllocationResponse]
	running      map[string]*si.Allocation
}

// register registers a resource manager; without a configuration it gets that of the server.
func register(ctx context.Context, client si.SchedulerClient, id, queues string) error {
	_, err := client.RegisterResourceManager(ctx, &si.RegisterResourceManagerRequest{
		RmID: id, Version: "interop", PolicyGroup: "queues", Config: queues,
	})
	return err
}

// connect registers a resource manager and opens its streams.
func connect(ctx context.Context, client si.SchedulerClient, id, queues, queue string) (*manager, error) {
	if err := register(ctx, client, id, queues); err != nil {
		return nil, fmt.Errorf("register %s: %w", id, err)
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
		id:           id,
		queue:        queue,
		nodes:        &wire.Stream[si.NodeRequest, si.NodeResponse]{Name: "UpdateNode", BidiStreamingClient: nodes},
		applications: &wire.Stream[si.ApplicationRequest, si.ApplicationResponse]{Name: "UpdateApplication", BidiStreamingClient: applications},
		allocations:  &wire.Stream[si.AllocationRequest, si.AllocationResponse]{Name: "UpdateAllocation", BidiStreamingClient: allocations},
		running:      make(map[string]*si.Allocation),
	}, nil
}

// close closes all streams, and checks that nothing was left in them that has to be acted upon.
func (m *manager) close() error {
	// All are closed before the first is read to its end: then the scheduler knows that this is no lost connection.
	if err := m.nodes.CloseSend(); err != nil {
		return err
	}
	if err := m.applications.CloseSend(); err != nil {
		return err
	}
	err := m.allocations.Finish(func(answer *si.AllocationResponse) error {
		if len(answer.New)+len(answer.RejectedAllocations) > 0 {
			return fmt.Errorf("an answer that nobody asked for: %v", answer)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := m.nodes.Finish(func(answer *si.NodeResponse) error {
		return fmt.Errorf("an answer that nobody asked for: %v", answer)
	}); err != nil {
		return err
	}
	return m.applications.Finish(func(answer *si.ApplicationResponse) error {
		if len(answer.Accepted)+len(answer.Rejected) > 0 {
			return fmt.Errorf("an answer that nobody asked for: %v", answer)
		}
		return nil // States of applications may still come.
	})
}

func memory(amount int64) *si.Resource {
	return &si.Resource{Resources: map[string]*si.Quantity{"memory": {Value: amount}}}
}

// addNodes makes nodes known, and waits until each has been accepted.
func (m *manager) addNodes(action si.NodeInfo_ActionFromRM, size int64, names ...string) error {
	request := &si.NodeRequest{RmID: m.id}
	for _, name := range names {
		request.Nodes = append(request.Nodes, &si.NodeInfo{
			NodeID:              name,
			Action:              action,
			Attributes:          map[string]string{"si/node-partition": partition, "si/hostname": name},
			SchedulableResource: memory(size),
		})
	}
	if err := m.nodes.Send(request); err != nil {
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

// changeNodes drains nodes, or ends that. Such a change has no answer, so a small node is made known behind it: when
// that has been accepted, the change has been carried out.
func (m *manager) changeNodes(action si.NodeInfo_ActionFromRM, behind string, names ...string) error {
	request := &si.NodeRequest{RmID: m.id}
	for _, name := range names {
		request.Nodes = append(request.Nodes, &si.NodeInfo{
			NodeID: name, Action: action, Attributes: map[string]string{"si/node-partition": partition},
		})
	}
	if err := m.nodes.Send(request); err != nil {
		return err
	}
	return m.addNodes(si.NodeInfo_CREATE_DRAIN, 1, behind)
}

// addApplications submits applications, and waits until each has been accepted.
func (m *manager) addApplications(names ...string) error {
	request := &si.ApplicationRequest{RmID: m.id}
	for _, name := range names {
		request.New = append(request.New, &si.AddApplicationRequest{
			ApplicationID: name,
			QueueName:     m.queue,
			PartitionName: partition,
			Ugi:           &si.UserGroupInformation{User: "gopher", Groups: []string{"gophers"}},
		})
	}
	if err := m.applications.Send(request); err != nil {
		return err
	}
	expected := wire.Expect("accepted applications", names)
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

// send sends asks, or allocations that exist already.
func (m *manager) send(allocations ...*si.Allocation) error {
	return m.allocations.Send(&si.AllocationRequest{RmID: m.id, Allocations: allocations})
}

// untilPlaced waits until asks have been placed, and checks each placement.
func (m *manager) untilPlaced(asks ...*si.Allocation) error {
	byKey := make(map[string]*si.Allocation)
	keys := make([]string, len(asks))
	for i, ask := range asks {
		byKey[ask.AllocationKey], keys[i] = ask, ask.AllocationKey
	}
	expected := wire.Expect("placements", keys)
	return m.allocations.Until(expected, func(answer *si.AllocationResponse) error {
		if len(answer.Released)+len(answer.RejectedAllocations)+len(answer.Rejected)+len(answer.ReleasedAsks) > 0 {
			return fmt.Errorf("wanted placements alone, got %v", answer)
		}
		for _, placed := range answer.New {
			if err := expected.Came(placed.AllocationKey); err != nil {
				return err
			}
			ask := byKey[placed.AllocationKey]
			given, wanted := placed.ResourcePerAlloc.GetResources(), ask.ResourcePerAlloc.GetResources()
			switch {
			case placed.ApplicationID != ask.ApplicationID || given["memory"].GetValue() != wanted["memory"].GetValue():
				return fmt.Errorf("the placement %v is not that of the ask %v", placed, ask)
			case placed.NodeID == "" || (ask.NodeID != "" && placed.NodeID != ask.NodeID):
				return fmt.Errorf("the placement %v has the wrong node", placed)
			case placed.UUID != "":
				return fmt.Errorf("the placement %v has a UUID, which only the older generation has", placed)
			}
			m.running[placed.AllocationKey] = placed
		}
		return nil
	})
}

// place sends asks and waits until each has been placed.
func (m *manager) place(asks ...*si.Allocation) error {
	if err := m.send(asks...); err != nil {
		return err
	}
	return m.untilPlaced(asks...)
}

// releaseAll releases what runs, and waits until each release has been confirmed.
func (m *manager) releaseAll() (int, error) {
	request := &si.AllocationRequest{RmID: m.id, Releases: &si.AllocationReleasesRequest{}}
	var keys []string
	for key, allocation := range m.running {
		keys = append(keys, key)
		request.Releases.AllocationsToRelease = append(request.Releases.AllocationsToRelease, &si.AllocationRelease{
			PartitionName:   partition,
			ApplicationID:   allocation.ApplicationID,
			AllocationKey:   key,
			TerminationType: si.TerminationType_STOPPED_BY_RM,
		})
	}
	if err := m.allocations.Send(request); err != nil {
		return 0, err
	}
	expected := wire.Expect("confirmed releases", keys)
	return len(keys), m.allocations.Until(expected, func(answer *si.AllocationResponse) error {
		if len(answer.New)+len(answer.RejectedAllocations) > 0 {
			return fmt.Errorf("wanted releases alone, got %v", answer)
		}
		for _, released := range answer.Released {
			if released.TerminationType != si.TerminationType_STOPPED_BY_RM || released.UUID != "" {
				return fmt.Errorf("the release %v is not the one that was sent", released)
			}
			if err := expected.Came(released.AllocationKey); err != nil {
				return err
			}
			delete(m.running, released.AllocationKey)
		}
		return nil
	})
}
