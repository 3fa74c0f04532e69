package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Prints every configuration of the filter that the files hold, each as a BreakerPolicy for a proxy of
// that file's name, so that the command `tidegate` can be asked about them; policies as they are, but
// named after their files.
//
// A configuration is what stands under `pluginConfig` (Istio), under `config` of a `wasm` entry (Envoy
// Gateway) or a `dynamicModule` entry, or as JSON in the `configuration` or `filter_config` of Envoy's filter.
func configurations(out io.Writer, files []string) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for number, document := range documents(string(text)) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if object["kind"] == "BreakerPolicy" {
				if err := renamed(out, fmt.Sprintf("%s-%d", file, number), object); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				continue
			}
			for index, found := range within(object, "") {
				if err := policy(out, fmt.Sprintf("%s-%d-%d", file, number, index), found); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return nil
}

// The configurations below a value that stands under `key`.
func within(value any, key string) []map[string]any {
	var found []map[string]any
	switch value := value.(type) {
	case map[string]any:
		if key == "pluginConfig" || (key == "config" && value["slo"] != nil) {
			return append(found, value)
		}
		if text, isText := value["value"].(string); isText && (key == "configuration" || key == "filter_config") {
			var config map[string]any
			if yaml.Unmarshal([]byte(text), &config) == nil {
				return append(found, config)
			}
		}
		for name, below := range value {
			found = append(found, within(below, name)...)
		}
	case []any:
		for _, below := range value {
			found = append(found, within(below, key)...)
		}
	}
	return found
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

func named(place string) string {
	return strings.Trim(notInName.ReplaceAllString(strings.ToLower(place), "-"), "-")
}

// A policy under a name that no other file has.
func renamed(out io.Writer, place string, object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		return fmt.Errorf("a policy without metadata")
	}
	metadata["name"] = named(place)
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "---\n%s", text)
	return err
}

func policy(out io.Writer, place string, config map[string]any) error {
	name := named(place)
	spec := map[string]any{"proxies": []any{map[string]any{"id": name}}}
	for key, value := range config {
		spec[key] = value
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "tidegate.dev/v1alpha1",
		"kind":       "BreakerPolicy",
		"metadata":   map[string]any{"name": name},
		"spec":       spec,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "---\n%s", text)
	return err
}
