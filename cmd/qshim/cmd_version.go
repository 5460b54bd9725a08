package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"qshim/cmd/internal/cmdline"
	"qshim/lockfile"
)

func versionCmd(a *app) *cmdline.Command {
	return &cmdline.Command{
		Use:   "version",
		Short: "Print the version",
		Run: func(context.Context, []string) error {
			_, err := fmt.Fprintln(a.stdout, versionLine())
			return err
		},
	}
}

// versionLine is what a report of a bug needs to say, and begins with.
func versionLine() string {
	return fmt.Sprintf("qshim %s (%s %s/%s, state schema %d)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, lockfile.Schema)
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel " + s.Value[:12]
		}
	}
	return "devel"
}
