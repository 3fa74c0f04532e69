package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// Says where two files differ in the objects that they hold.
//
// The order of objects does not count, nor that of list entries that have names (of variables, volumes,
// ports): an overlay puts its own before or after those of the base, and Kubernetes tells them by name.
func same(first, second string) error {
	left, err := objects(first)
	if err != nil {
		return err
	}
	right, err := objects(second)
	if err != nil {
		return err
	}
	wrong := 0
	for key, object := range left {
		other, found := right[key]
		switch {
		case !found:
			fmt.Fprintf(os.Stderr, "%s is in %s, not in %s\n", key, first, second)
			wrong++
		case object != other:
			fmt.Fprintf(os.Stderr, "%s differs\n  %s\n%s\n  %s\n%s\n", key, first, object, second, other)
			wrong++
		}
		delete(right, key)
	}
	for key := range right {
		fmt.Fprintf(os.Stderr, "%s is in %s, not in %s\n", key, second, first)
		wrong++
	}
	if wrong > 0 {
		return fmt.Errorf("%d objects differ", wrong)
	}
	return nil
}

// What tells objects apart.
type identity struct{ kind, namespace, name string }

func (i identity) String() string { return i.kind + " " + i.namespace + "/" + i.name }

func identify(object map[string]any) identity {
	metadata, _ := object["metadata"].(map[string]any)
	text := func(value any) string {
		found, _ := value.(string)
		return found
	}
	return identity{text(object["kind"]), text(metadata["namespace"]), text(metadata["name"])}
}

// The objects of a file as text in one form.
func objects(file string) (map[identity]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := map[identity]string{}
	for _, document := range documents(string(text)) {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if object == nil {
			continue
		}
		key := identify(object)
		if _, twice := found[key]; twice {
			return nil, fmt.Errorf("%s: %s stands twice", file, key)
		}
		sorted, err := json.MarshalIndent(ordered(object), "    ", " ")
		if err != nil {
			return nil, err
		}
		found[key] = string(sorted)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no objects", file)
	}
	return found, nil
}

// The value with lists of named entries sorted by name.
func ordered(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			value[key] = ordered(below)
		}
		return value
	case []any:
		for i, below := range value {
			value[i] = ordered(below)
		}
		if len(value) > 0 && name(value[0]) != "" {
			slices.SortStableFunc(value, func(a, b any) int { return cmp.Compare(name(a), name(b)) })
		}
		return value
	default:
		return value
	}
}

func name(value any) string {
	entry, _ := value.(map[string]any)
	text, _ := entry["name"].(string)
	return text
}
