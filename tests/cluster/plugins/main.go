// Plugins prints what kube-scheduler looks at by default: its version, its plugins and the gates of these.
//
// It writes one JSON object: {"version", "plugins": [names], "gates": {name: whether it is on by default}}.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"

	"k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	plugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

func main() {
	configuration, err := latest.Default()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	found := struct {
		Version string          `json:"version"`
		Plugins []string        `json:"plugins"`
		Gates   map[string]bool `json:"gates"`
	}{version(), []string{}, map[string]bool{}}
	for _, plugin := range configuration.Profiles[0].Plugins.MultiPoint.Enabled {
		found.Plugins = append(found.Plugins, plugin.Name)
	}
	gates := reflect.ValueOf(plugins.NewSchedulerFeaturesFromGates(feature.DefaultFeatureGate))
	for index := range gates.NumField() {
		found.Gates[strings.TrimPrefix(gates.Type().Field(index).Name, "Enable")] = gates.Field(index).Bool()
	}
	writer := json.NewEncoder(os.Stdout)
	writer.SetIndent("", "  ")
	if err := writer.Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// version returns that of the module of Kubernetes that the program is built with.
func version() string {
	information, _ := debug.ReadBuildInfo()
	for _, module := range information.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return module.Version
		}
	}
	return ""
}
