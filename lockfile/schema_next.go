//go:build nextschema

package lockfile

// Schema is that of a qshim that does not exist yet: cmd/internal/soak builds
// one, to see this one and the next on one state directory.
const Schema = 2
