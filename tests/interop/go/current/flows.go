package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"licorne.test/interop/si"
	"licorne.test/interop/wire"
)

const (
	nodeCount        = 100
	nodeSize         = 20
	applicationCount = 10
	askCount         = 1000
	askSize          = 2 // All asks fill all nodes.
)

// ask returns an ask; with a node it is an allocation that exists already.
func ask(key, application, node string, size int64) *si.Allocation {
	return &si.Allocation{
		AllocationKey: key, ApplicationID: application, PartitionName: partition, NodeID: node,
		ResourcePerAlloc: memory(size),
	}
}

// asks returns as many asks of one application.
func asks(start, application string, count int, size int64) []*si.Allocation {
	all := make([]*si.Allocation, count)
	for i, key := range wire.Numbered(start, count) {
		all[i] = ask(key, application, "", size)
	}
	return all
}

// checkServices calls the health service and lists the services by reflection.
func checkServices(ctx context.Context, connection *grpc.ClientConn) error {
	request := &grpc_health_v1.HealthCheckRequest{Service: "si.v1.Scheduler"}
	health, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, request)
	if err != nil {
		return err
	}
	if health.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the health of the server is %s", health.Status)
	}
	stream, err := grpc_reflection_v1alpha.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		return err
	}
	list := &grpc_reflection_v1alpha.ServerReflectionRequest_ListServices{}
	if err := stream.Send(&grpc_reflection_v1alpha.ServerReflectionRequest{MessageRequest: list}); err != nil {
		return err
	}
	answer, err := stream.Recv()
	if err != nil {
		return err
	}
	for _, service := range answer.GetListServicesResponse().GetService() {
		if service.Name == "si.v1.Scheduler" {
			return stream.CloseSend()
		}
	}
	return fmt.Errorf("reflection does not list si.v1.Scheduler: %v", answer)
}

// checkRefusals sends what a scheduler has to refuse, and checks the status of each.
func checkRefusals(ctx context.Context, client si.SchedulerClient, queues, queue string) error {
	// Two mistakes: a name with a dot, and an unknown key.
	broken := `
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: no.dots
          - name: leaf
            limit: none
`
	err := wire.RefusedWith(register(ctx, client, "refused", broken), codes.InvalidArgument, "7:19", "no.dots", "9:13", "limit")
	if err != nil {
		return fmt.Errorf("a bad configuration: %w", err)
	}

	stream, err := client.UpdateNode(ctx)
	if err != nil {
		return err
	}
	nodes := &wire.Stream[si.NodeRequest, si.NodeResponse]{Name: "UpdateNode", BidiStreamingClient: stream}
	if err := nodes.Send(&si.NodeRequest{RmID: "refused"}); err != nil {
		return err
	}
	if err := nodes.EndsWith(codes.FailedPrecondition, "refused"); err != nil {
		return fmt.Errorf("a stream of a resource manager that has not registered: %w", err)
	}

	m, err := connect(ctx, client, "two-faced", queues, queue)
	if err != nil {
		return err
	}
	if err := m.addNodes(si.NodeInfo_CREATE, 1, "node"); err != nil {
		return err
	}
	if err := m.nodes.Send(&si.NodeRequest{RmID: "somebody-else"}); err != nil {
		return err
	}
	if err := m.nodes.EndsWith(codes.PermissionDenied, "somebody-else"); err != nil {
		return fmt.Errorf("a stream that names another resource manager: %w", err)
	}
	return nil
}

// workload fills all nodes with asks, releases all, and does so again with asks as large as a node.
func (m *manager) workload(result *result) error {
	nodes, applications := wire.Numbered("node", nodeCount), wire.Numbered("app", applicationCount)
	if err := m.addNodes(si.NodeInfo_CREATE, nodeSize, nodes...); err != nil {
		return err
	}
	if err := m.addApplications(applications...); err != nil {
		return err
	}
	var all []*si.Allocation
	for _, application := range applications {
		own := asks("ask-"+application, application, askCount/applicationCount, askSize)
		if err := m.send(own...); err != nil {
			return err
		}
		all = append(all, own...)
	}
	if err := m.untilPlaced(all...); err != nil {
		return err
	}
	used := make(map[string]int64)
	for _, placed := range m.running {
		used[placed.NodeID] += askSize
	}
	for _, node := range nodes {
		if used[node] != nodeSize {
			return fmt.Errorf("on %s there are %d of %d, by the placements", node, used[node], nodeSize)
		}
	}
	released, err := m.releaseAll()
	if err != nil {
		return err
	}
	result.Nodes, result.Placements, result.Releases = len(used), len(all), released

	// Each of these needs an empty node: they show that the scheduler has forgotten all that was released.
	if err := m.place(asks("whole", applications[0], nodeCount, nodeSize)...); err != nil {
		return err
	}
	_, err = m.releaseAll()
	return err
}

// rejection asks for an application that nobody has submitted.
func (m *manager) rejection() error {
	if err := m.send(ask("lost", "nowhere", "", 1)); err != nil {
		return err
	}
	expected := wire.Expect("rejections", []string{"lost"})
	return m.allocations.Until(expected, func(answer *si.AllocationResponse) error {
		for _, rejected := range answer.RejectedAllocations {
			if rejected.ApplicationID != "nowhere" || rejected.Reason == "" || len(answer.Rejected) > 0 {
				return fmt.Errorf("the rejection %v is not that of the ask", answer)
			}
			if err := expected.Came(rejected.AllocationKey); err != nil {
				return err
			}
		}
		return nil
	})
}

// draining drains all nodes but one, and checks that asks get that one alone.
func (m *manager) draining() error {
	nodes := wire.Numbered("node", nodeCount)
	if err := m.changeNodes(si.NodeInfo_DRAIN_NODE, "behind-draining", nodes[1:]...); err != nil {
		return err
	}
	first, more := asks("drained", "app-0", nodeSize, 1), asks("reopened", "app-0", nodeSize, 1)
	if err := m.place(first...); err != nil {
		return err
	}
	for _, ask := range first {
		if node := m.running[ask.AllocationKey].NodeID; node != nodes[0] {
			return fmt.Errorf("%s was placed on %s, which is drained", ask.AllocationKey, node)
		}
	}
	// The one node is full now, so these have to wait for the others.
	if err := m.send(more...); err != nil {
		return err
	}
	if err := m.changeNodes(si.NodeInfo_DRAIN_TO_SCHEDULABLE, "behind-reopening", nodes[1:]...); err != nil {
		return err
	}
	if err := m.untilPlaced(more...); err != nil {
		return err
	}
	_, err := m.releaseAll()
	return err
}

// foreign has others use a node, more of it, less of it and nothing. It has no answers: what fits beside it shows
// that it counts.
func (m *manager) foreign() error {
	const node, size = "foreign-node", 100
	if err := m.changeNodes(si.NodeInfo_DRAIN_NODE, "behind-foreign", wire.Numbered("node", nodeCount)...); err != nil {
		return err
	}
	if err := m.addNodes(si.NodeInfo_CREATE, size, node); err != nil {
		return err
	}
	occupied := func(amount int64) *si.Allocation {
		pod := ask("foreign-pod", "", node, amount)
		pod.AllocationTags = map[string]string{"foreign": "static"}
		return pod
	}
	large, small, rest := ask("large", "app-0", "", 60), ask("small", "app-0", "", 10), ask("rest", "app-0", "", 30)
	if err := m.send(occupied(90)); err != nil {
		return err
	}
	if err := m.send(large); err != nil { // It waits,
		return err
	}
	if err := m.place(small); err != nil { // for this one fills the node.
		return err
	}
	if err := m.send(occupied(30)); err != nil {
		return err
	}
	if err := m.untilPlaced(large); err != nil {
		return err
	}
	if err := m.send(rest); err != nil { // There is no room for it until the foreign allocation is removed.
		return err
	}
	err := m.allocations.Send(&si.AllocationRequest{RmID: m.id, Releases: &si.AllocationReleasesRequest{
		AllocationsToRelease: []*si.AllocationRelease{{
			PartitionName: partition, AllocationKey: "foreign-pod", TerminationType: si.TerminationType_STOPPED_BY_RM,
		}},
	}})
	if err != nil {
		return err
	}
	if err := m.untilPlaced(rest); err != nil {
		return err
	}
	_, err = m.releaseAll()
	return err
}

// recovery sends what ran before a restart: nodes that are not used yet, applications, allocations with their nodes;
// then asks, and at last it opens the nodes.
func (m *manager) recovery() error {
	nodes := wire.Numbered("old-node", 2)
	if err := m.addNodes(si.NodeInfo_CREATE_DRAIN, 10, nodes...); err != nil {
		return err
	}
	if err := m.addNodes(si.NodeInfo_CREATE, 3, "new-node"); err != nil {
		return err
	}
	if err := m.addApplications("old-app"); err != nil {
		return err
	}
	var existing []*si.Allocation
	for _, node := range nodes {
		existing = append(existing, ask("on-"+node, "old-app", node, 6))
	}
	if err := m.place(existing...); err != nil { // They come back as they were sent.
		return err
	}
	first, more := asks("early", "old-app", 3, 1), asks("late", "old-app", 8, 1)
	if err := m.place(first...); err != nil {
		return err
	}
	for _, ask := range first {
		if node := m.running[ask.AllocationKey].NodeID; node != "new-node" {
			return fmt.Errorf("%s was placed on %s, which was not open yet", ask.AllocationKey, node)
		}
	}
	// Beside the existing allocations there is room for just these.
	if err := m.send(more...); err != nil {
		return err
	}
	if err := m.changeNodes(si.NodeInfo_DRAIN_TO_SCHEDULABLE, "behind-recovery", nodes...); err != nil {
		return err
	}
	if err := m.untilPlaced(more...); err != nil {
		return err
	}
	_, err := m.releaseAll()
	return err
}
