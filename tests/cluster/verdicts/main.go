// Verdicts asks the real filters of kube-scheduler which nodes they refuse a pod.
//
// It reads one case a line from its input, in JSON: {"pod", "nodes", "pods", "namespaces"}, objects of Kubernetes;
// a pod of "pods" is on the node that its spec names. It writes one line a case: a JSON object that gives, for each
// node in alphabetical order of the names, the names of the plugins that refuse it, as {"node": ["plugin", ...]}.
// Each of the seven plugins is asked for every node, whatever the others say, so that a difference shows where it is.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type scene struct {
	Pod        *v1.Pod         `json:"pod"`
	Nodes      []*v1.Node      `json:"nodes"`
	Pods       []*v1.Pod       `json:"pods"`
	Namespaces []*v1.Namespace `json:"namespaces"`
}

// handle is what plugins ask of the scheduler around them; a method that is missing here is asked by none of the seven.
type handle struct {
	fwk.Handle
	snapshot    *cache.Snapshot
	informers   informers.SharedInformerFactory
	parallelism fwk.Parallelizer
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.snapshot }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) Parallelizer() fwk.Parallelizer                         { return h.parallelism }

type factory func(ctx context.Context, handle fwk.Handle, features feature.Features) (fwk.Plugin, error)
type configured func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)

func with(create configured, arguments runtime.Object) factory {
	return func(ctx context.Context, handle fwk.Handle, features feature.Features) (fwk.Plugin, error) {
		return create(ctx, arguments, handle, features)
	}
}

var factories = []factory{
	with(nodename.New, nil),
	with(nodeunschedulable.New, nil),
	with(tainttoleration.New, nil),
	with(nodeaffinity.New, &config.NodeAffinityArgs{}),
	with(nodeports.New, nil),
	with(podtopologyspread.New, &config.PodTopologySpreadArgs{DefaultingType: config.SystemDefaulting}),
	with(interpodaffinity.New, &config.InterPodAffinityArgs{}),
}

// The defaults of v1.37, and the comparing operators of tolerations: an API server without them accepts none, so
// that a scheduler without them is never asked.
var features = feature.Features{
	EnableNodeInclusionPolicyInPodTopologySpread: true,
	EnableMatchLabelKeysInPodTopologySpread:      true,
	EnableTaintTolerationComparisonOperators:     true,
}

func main() {
	metrics.Register() // the plugins count what they do
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	scenes := json.NewDecoder(bufio.NewReaderSize(input, 1<<20))
	writer := bufio.NewWriter(output)
	defer writer.Flush()
	answers := json.NewEncoder(writer)
	for {
		var asked scene
		if err := scenes.Decode(&asked); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		refused, err := judge(context.Background(), asked)
		if err != nil {
			return err
		}
		if err := answers.Encode(refused); err != nil {
			return err
		}
	}
}

func judge(ctx context.Context, asked scene) (map[string][]string, error) {
	around := &handle{
		snapshot:    cache.NewSnapshot(asked.Pods, asked.Nodes),
		informers:   informers.NewSharedInformerFactory(nil, 0),
		parallelism: parallelize.NewParallelizer(1),
	}
	for _, namespace := range asked.Namespaces {
		if err := around.informers.Core().V1().Namespaces().Informer().GetIndexer().Add(namespace); err != nil {
			return nil, err
		}
	}
	nodes, err := around.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	refused := make(map[string][]string, len(nodes))
	for _, node := range nodes {
		refused[node.Node().Name] = []string{}
	}
	for _, create := range factories {
		plugin, err := create(ctx, around, features)
		if err != nil {
			return nil, err
		}
		for _, name := range refusedBy(ctx, plugin, asked.Pod, nodes) {
			refused[name] = append(refused[name], plugin.Name())
		}
	}
	return refused, nil
}

// refusedBy carries out the two steps of a scheduling cycle that filter, for one plugin.
func refusedBy(ctx context.Context, plugin fwk.Plugin, pod *v1.Pod, nodes []fwk.NodeInfo) []string {
	state := framework.NewCycleState()
	var names []string
	var among *fwk.PreFilterResult
	if before, is := plugin.(fwk.PreFilterPlugin); is {
		result, status := before.PreFilter(ctx, state, pod, nodes)
		if status.IsSkip() {
			return nil
		}
		if !status.IsSuccess() {
			for _, node := range nodes {
				names = append(names, node.Node().Name)
			}
			return names
		}
		among = result
	}
	for _, node := range nodes {
		outside := among != nil && !among.AllNodes() && !among.NodeNames.Has(node.Node().Name)
		if outside || !plugin.(fwk.FilterPlugin).Filter(ctx, state, pod, node).IsSuccess() {
			names = append(names, node.Node().Name)
		}
	}
	return names
}
