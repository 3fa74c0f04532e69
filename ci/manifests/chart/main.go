// Checks and renders a Helm chart with Helm's own packages: what `helm lint` and `helm template` do,
// without the clients of clusters and registries that make up most of Helm.
//
//	chart lint CHART [VALUES..]          every complaint of Helm's linter; ends with 1 if there is one
//	chart template [OPTIONS] CHART [VALUES..]
//	    -name NAME -namespace NAMESPACE  of the release
//	    -only KINDS -except KINDS        which objects to print, kinds separated by commas
//	    -beyond FILE                     only objects that FILE does not hold
//	chart same FILE FILE                 whether two files hold the same objects, in whatever order
//	chart configurations FILE..          the filter's configurations in the files, as policies
//
// VALUES are files, later ones win. Values that the chart's schema does not allow are rejected.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "chart: error: %v\n", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	usage := errors.New("usage: chart lint|template [OPTIONS] CHART [VALUES..], same FILE FILE, or configurations FILE..")
	if len(words) == 0 {
		return usage
	}
	var wanted release
	flags := flag.NewFlagSet("chart "+words[0], flag.ContinueOnError)
	flags.StringVar(&wanted.name, "name", "tidegate", "name of the release")
	flags.StringVar(&wanted.namespace, "namespace", "tidegate-system", "namespace of the release")
	only := flags.String("only", "", "kinds to print, separated by commas; empty is all")
	except := flags.String("except", "", "kinds not to print")
	beyond := flags.String("beyond", "", "file whose objects are not printed")
	if err := flags.Parse(words[1:]); err != nil {
		return err
	}
	names := flags.Args()
	switch {
	case words[0] == "same" && len(names) == 2:
		return same(names[0], names[1])
	case words[0] == "configurations" && len(names) > 0:
		return configurations(os.Stdout, names)
	case words[0] == "lint" && len(names) > 0:
		return check(names[0], names[1:], wanted)
	case words[0] == "template" && len(names) > 0:
		isAsked, err := choice(*only, *except, *beyond)
		if err != nil {
			return err
		}
		return render(os.Stdout, names[0], names[1:], wanted, isAsked)
	}
	return usage
}
