// Sizes asks the function of Kubernetes what pods need of their nodes.
//
// It reads one pod a line from its input, in JSON, and writes one line a pod: a JSON object of whole numbers, "vcore" in
// thousandths of a core, every other resource under its name; what is zero is left out. The options are those that
// kube-scheduler counts the pods of a node with, by the gates that are on by default.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/features"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	gate := utilfeature.DefaultFeatureGate
	options := resource.PodResourcesOptions{
		UseStatusResources: gate.Enabled(features.InPlacePodVerticalScaling),
		InPlacePodLevelResourcesVerticalScalingEnabled: gate.Enabled(features.InPlacePodLevelResourcesVerticalScaling),
		SkipPodLevelResources:                          !gate.Enabled(features.PodLevelResources),
		UseDRANodeAllocatableResourceClaimStatus:       gate.Enabled(features.DRANodeAllocatableResources),
	}
	pods := json.NewDecoder(bufio.NewReaderSize(input, 1<<20))
	writer := bufio.NewWriter(output)
	defer writer.Flush()
	answers := json.NewEncoder(writer)
	for {
		var pod v1.Pod
		if err := pods.Decode(&pod); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		sizes := map[string]int64{}
		for name, quantity := range resource.PodRequests(&pod, options) {
			if quantity.IsZero() {
				continue
			}
			if name == v1.ResourceCPU {
				sizes["vcore"] = quantity.MilliValue()
			} else {
				sizes[string(name)] = quantity.Value()
			}
		}
		if err := answers.Encode(sizes); err != nil {
			return err
		}
	}
}
