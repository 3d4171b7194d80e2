// Verdicts asks the real plugins of kube-scheduler which nodes they refuse a pod, and how they score the others.
//
// It reads one case a line from its input, in JSON: {"pod", "nodes", "pods", "namespaces", "claims"}, objects of
// Kubernetes; a pod of "pods" is on the node that its spec names. It writes one line a case: a JSON object with "refused", the
// names of the plugins that refuse each node, as {"node": ["plugin", ...]}, and "scores", as {"plugin": {"node": score}}: the
// scores of the nodes that no plugin refuses, normalized and without weights; a plugin that skips the pod has none.
// Each of the plugins is asked for every node, whatever the others say, so that a difference shows where it is.
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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type scene struct {
	Pod        *v1.Pod                     `json:"pod"`
	Nodes      []*v1.Node                  `json:"nodes"`
	Pods       []*v1.Pod                   `json:"pods"`
	Namespaces []*v1.Namespace             `json:"namespaces"`
	Claims     []*v1.PersistentVolumeClaim `json:"claims"`
}

// handle is what plugins ask of the scheduler around them; a method that is missing here is asked by none of them.
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
	with(nodedeclaredfeatures.New, nil),
	with(nodeports.New, nil),
	with(volumerestrictions.New, nil),
	with(podtopologyspread.New, &config.PodTopologySpreadArgs{DefaultingType: config.SystemDefaulting}),
	with(interpodaffinity.New, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}),
}

// The defaults of v1.37, and the comparing operators of tolerations: an API server without them accepts none, so
// that a scheduler without them is never asked.
var features = feature.Features{
	EnableNodeInclusionPolicyInPodTopologySpread: true,
	EnableMatchLabelKeysInPodTopologySpread:      true,
	EnableTaintTolerationComparisonOperators:     true,
	EnableNodeDeclaredFeatures:                   true,
}

// The plugins that score by what pods prefer.
var scoring = map[string]bool{nodeaffinity.Name: true, podtopologyspread.Name: true, interpodaffinity.Name: true}

type verdict struct {
	Refused map[string][]string         `json:"refused"`
	Scores  map[string]map[string]int64 `json:"scores"`
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
		found, err := judge(context.Background(), asked)
		if err != nil {
			return err
		}
		if err := answers.Encode(found); err != nil {
			return err
		}
	}
}

func judge(ctx context.Context, asked scene) (*verdict, error) {
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
	for _, claim := range asked.Claims {
		if err := around.informers.Core().V1().PersistentVolumeClaims().Informer().GetIndexer().Add(claim); err != nil {
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
	var scorers []fwk.Plugin
	for _, create := range factories {
		plugin, err := create(ctx, around, features)
		if err != nil {
			return nil, err
		}
		if scoring[plugin.Name()] {
			scorers = append(scorers, plugin)
		}
		for _, name := range refusedBy(ctx, plugin, asked.Pod, nodes) {
			refused[name] = append(refused[name], plugin.Name())
		}
	}
	var possible []fwk.NodeInfo
	for _, node := range nodes {
		if len(refused[node.Node().Name]) == 0 {
			possible = append(possible, node)
		}
	}
	scores := map[string]map[string]int64{}
	for _, plugin := range scorers {
		found, err := scoresBy(ctx, plugin.(fwk.ScorePlugin), asked.Pod, possible)
		if err != nil {
			return nil, err
		}
		if found != nil {
			scores[plugin.Name()] = found
		}
	}
	return &verdict{refused, scores}, nil
}

// scoresBy carries out the three steps of a scheduling cycle that score, for one plugin; nil if it skips the pod.
func scoresBy(ctx context.Context, plugin fwk.ScorePlugin, pod *v1.Pod, nodes []fwk.NodeInfo) (map[string]int64, error) {
	state := framework.NewCycleState()
	if status := plugin.(fwk.PreScorePlugin).PreScore(ctx, state, pod, nodes); status.IsSkip() || len(nodes) == 0 {
		return nil, nil
	} else if !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores := fwk.NodeScoreList{}
	for _, node := range nodes {
		score, status := plugin.Score(ctx, state, pod, node)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		scores = append(scores, fwk.NodeScore{Name: node.Node().Name, Score: score})
	}
	if status := plugin.ScoreExtensions().NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
		return nil, status.AsError()
	}
	found := map[string]int64{}
	for _, score := range scores {
		found[score.Name] = score.Score
	}
	return found, nil
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
