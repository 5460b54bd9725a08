package lockfile_test

import (
	"path/filepath"
	"testing"

	"qshim/lockfile"
	"qshim/lockfile/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(tb testing.TB, place string) lockfile.Store {
		tb.Helper()
		d, err := lockfile.Open(filepath.Join(place, "state"), lockfile.Options{
			Notice: func(n lockfile.Notice) { tb.Errorf("unexpected notice: %+v", n) },
		})
		if err != nil {
			tb.Fatal(err)
		}
		return d
	})
}
