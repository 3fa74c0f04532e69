// Command compose checks compose files as `docker compose` would read them: against the schema of the
// Compose specification, by the library that docker compose itself is built on. Beyond that, everything
// that is mounted or built from must be there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// built is what a target makes, so that it may be missing in a fresh clone.
const built = "dist"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: compose ROOT FILE...")
		os.Exit(2)
	}
	failed := false
	for _, file := range os.Args[2:] {
		if err := check(os.Args[1], file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func check(root, file string) error {
	// All profiles: what is started later is checked as well.
	options, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	var wrong []error
	for name, service := range project.Services {
		for _, mount := range service.Volumes {
			if mount.Type == types.VolumeTypeBind {
				wrong = append(wrong, exists(root, name, mount.Source))
			}
		}
		if build := service.Build; build != nil {
			wrong = append(wrong, exists(root, name, filepath.Join(build.Context, build.Dockerfile)))
		}
	}
	return errors.Join(wrong...)
}

func exists(root, service, path string) error {
	if strings.HasPrefix(path, filepath.Join(root, built)+string(filepath.Separator)) {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("service %s: found no %s, expected what it mounts or is built from", service, path)
	} else if err != nil {
		return fmt.Errorf("service %s: %w", service, err)
	}
	return nil
}
