// Makes JSON schemas for kubeconform from what Kubernetes itself reads: definitions of custom resources,
// and the OpenAPI document of the API server.
//
//	schemas OUT FILE..     FILE: definitions (.yaml), or the OpenAPI document (swagger.json)
//
// Every kind gets OUT/<kind>_<group>_<version>.json, in lower case. What the API server would drop with a
// warning is refused: a field that a definition does not know is an error in a file that we ship. Rules in
// CEL are not carried over; the API server checks those.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

type schema = map[string]any

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "schemas: error: usage: schemas OUT FILE..")
		os.Exit(1)
	}
	written := 0
	for _, file := range os.Args[2:] {
		count, err := translate(file, os.Args[1])
		if err != nil {
			fmt.Fprintf(os.Stderr, "schemas: error: %s: %v\n", file, err)
			os.Exit(1)
		}
		written += count
	}
	fmt.Printf("%d\n", written)
}

func translate(file, out string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	if strings.HasSuffix(file, ".json") {
		return ofServer(text, out)
	}
	written := 0
	for _, document := range strings.Split("\n"+string(text), "\n---") {
		count, err := ofDefinition([]byte(document), out)
		if err != nil {
			return written, err
		}
		written += count
	}
	if written == 0 {
		return 0, fmt.Errorf("no definition of a custom resource in it")
	}
	return written, nil
}

// Writes a schema for each version in a CustomResourceDefinition; other objects are passed over.
func ofDefinition(text []byte, out string) (int, error) {
	var definition struct {
		Kind string `json:"kind"`
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					Open schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return 0, err
	}
	if definition.Kind != "CustomResourceDefinition" {
		return 0, nil
	}
	spec := definition.Spec
	for _, version := range spec.Versions {
		whole := closed(version.Schema.Open)
		properties, _ := whole["properties"].(schema)
		if properties == nil {
			return 0, fmt.Errorf("%s %s has no properties", spec.Names.Kind, version.Name)
		}
		for _, key := range []string{"apiVersion", "kind", "metadata"} {
			if _, stands := properties[key]; !stands {
				properties[key] = schema{}
			}
		}
		if err := write(out, spec.Names.Kind, spec.Group, version.Name, whole); err != nil {
			return 0, err
		}
	}
	return len(spec.Versions), nil
}

// Writes a schema for each kind in the API server's OpenAPI document.
func ofServer(text []byte, out string) (int, error) {
	var document struct {
		Definitions map[string]schema `json:"definitions"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return 0, err
	}
	parts := schema{}
	for name, part := range document.Definitions {
		parts[name] = closed(part)
	}
	// Kubernetes takes a number where it says a quantity.
	parts["io.k8s.apimachinery.pkg.api.resource.Quantity"] = schema{"type": []any{"string", "number"}}
	parts["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = schema{"type": []any{"string", "integer"}}
	written := 0
	for name, part := range document.Definitions {
		kinds, _ := part["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue
		}
		kind, _ := kinds[0].(schema)
		word := func(key string) string { text, _ := kind[key].(string); return text }
		whole := schema{"$ref": "#/definitions/" + name, "definitions": reached(name, parts)}
		if err := write(out, word("kind"), word("group"), word("version"), whole); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}

// The parts that a part leads to, itself among them.
func reached(name string, parts schema) schema {
	found, waiting := schema{}, []string{name}
	for len(waiting) > 0 {
		next := waiting[0]
		waiting = waiting[1:]
		if _, seen := found[next]; !seen {
			found[next] = parts[next]
			waiting = append(waiting, references(parts[next])...)
		}
	}
	return found
}

func references(value any) []string {
	var found []string
	switch value := value.(type) {
	case schema:
		for key, below := range value {
			if target, isText := below.(string); isText && key == "$ref" {
				found = append(found, strings.TrimPrefix(target, "#/definitions/"))
			}
			found = append(found, references(below)...)
		}
	case []any:
		for _, below := range value {
			found = append(found, references(below)...)
		}
	}
	return found
}

func write(out, kind, group, version string, whole schema) error {
	// kubeconform asks for the kinds of the core group so.
	if group == "" {
		group = version
	}
	name := strings.ToLower(fmt.Sprintf("%s_%s_%s.json", kind, group, version))
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, name), text, 0o644)
}
