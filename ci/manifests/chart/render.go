package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// What a chart is rendered for.
type release struct{ name, namespace string }

// Values of all files, later ones over earlier ones.
func read(files []string) (map[string]any, error) {
	values := map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found := map[string]any{}
		if err := yaml.UnmarshalStrict(text, &found); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		values = util.CoalesceTables(found, values)
	}
	return values, nil
}

func check(chart string, files []string, wanted release) error {
	values, err := read(files)
	if err != nil {
		return err
	}
	bad := 0
	for _, message := range lint.RunAll(chart, values, wanted.namespace).Messages {
		if message.Severity >= support.WarningSev {
			fmt.Fprintln(os.Stderr, message)
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%s: %d complaints", chart, bad)
	}
	return nil
}

// Whether an object is to be printed.
func choice(only, except, beyond string) (func(identity) bool, error) {
	held := map[identity]string{}
	if beyond != "" {
		var err error
		if held, err = objects(beyond); err != nil {
			return nil, err
		}
	}
	return func(object identity) bool {
		_, isHeld := held[object]
		isAsked := only == "" || slices.Contains(strings.Split(only, ","), object.kind)
		return isAsked && !isHeld && !slices.Contains(strings.Split(except, ","), object.kind)
	}, nil
}

func render(out io.Writer, path string, files []string, wanted release, isAsked func(identity) bool) error {
	values, err := read(files)
	if err != nil {
		return err
	}
	chart, err := loader.Load(path)
	if err != nil {
		return err
	}
	options := common.ReleaseOptions{Name: wanted.name, Namespace: wanted.namespace, Revision: 1, IsInstall: true}
	given, err := util.ToRenderValues(chart, values, options, common.DefaultCapabilities)
	if err != nil {
		return err
	}
	texts, err := engine.Engine{Strict: true}.Render(chart, given)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(texts))
	for name := range texts {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, document := range documents(texts[name]) {
			if err := show(out, document, name, isAsked); err != nil {
				return err
			}
		}
	}
	return nil
}

func documents(text string) []string { return strings.Split("\n"+text, "\n---") }

// Prints a document if it is an object that is asked for.
func show(out io.Writer, document, name string, isAsked func(identity) bool) error {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if object == nil || !isAsked(identify(object)) {
		return nil
	}
	_, err := fmt.Fprintf(out, "---\n%s\n", strings.TrimSpace(document))
	return err
}
