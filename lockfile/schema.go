//go:build !nextschema

package lockfile

// Schema is the version written into every state file. A reader that meets a
// higher one steps aside (DESIGN section 4.14).
const Schema = 1
