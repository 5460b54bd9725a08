package agents

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"qshim/policies/internal/literal"
)

var update = flag.Bool("update", false, "write builtin_gen.go anew")

// builtin_gen.go is the launch part of every file here, as Parse reads it.
func TestBuiltinGenerated(t *testing.T) {
	var index, profiles strings.Builder
	for _, name := range Names() {
		data, _ := Builtin(name)
		p, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		p.Raw, p.Examples = nil, Examples{}
		fmt.Fprintf(&index, "%s,\n", literal.Of(p.Entry(), "agents"))
		fmt.Fprintf(&profiles, "case %q:\nreturn &%s\n", name, literal.Of(*p, "agents"))
	}
	source := "package agents\n\nvar builtins = Index{\n" + index.String() + "}\n\n// compiled is a built-in profile without its text; nil: there is none.\n" +
		"func compiled(name string) *Profile {\nswitch name {\n" + profiles.String() + "}\nreturn nil\n}\n"
	if err := literal.File("builtin_gen.go", source, *update); err != nil {
		t.Error(err)
	}
}
