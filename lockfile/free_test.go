package lockfile

import (
	"reflect"
	"testing"
	"time"

	"qshim/detect/finding"
)

// Every field of a limiter but its name and what was used of it makes it one that
// is looked at: also a field that somebody adds.
func TestFreeLimiter(t *testing.T) {
	free := Limiter{Schema: Schema, ID: "anthropic/a#opus", Updated: time.Unix(1, 0), Used: time.Unix(1, 0),
		Share: &Share{Used: 12.5, At: time.Unix(1, 0), Ends: time.Unix(2, 0), Tokens: 1, From: 2, Base: 3, Size: 4, Learnt: 5}}
	fields := reflect.TypeFor[Limiter]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		switch f.Name {
		case "Schema", "ID", "Label", "Updated", "Used", "Share":
			continue
		}
		l := Limiter{Schema: Schema, ID: "x", Label: "y", Updated: time.Unix(1, 0)}
		reflect.ValueOf(&l).Elem().Field(i).Set(full(f.Type))
		data, err := encode(l)
		if err != nil {
			t.Fatal(err)
		}
		if freeLimiter(data) {
			t.Errorf("with %s it counts as free: %s", f.Name, data)
		}
	}
	for _, label := range []string{"", "Claude Max, 3f9a…", `he said "id":[1] \`} {
		free.Label = label
		if data, _ := encode(free); freeLimiter(data) == (label != "" && label[0] == 'h') {
			t.Errorf("of %q: %s", label, data)
		}
	}
	for _, text := range []string{"", "{}", `{"schema":99,"id":"x"}`, `null`, `{"schema":1,"id":"x","holds":[]}`, `{"schema":1,"id":"x","used":"y","\u0068olds":[]}`} {
		if freeLimiter([]byte(text)) {
			t.Errorf("free: %s", text)
		}
	}
}

// full is a value of a type that is not its zero.
func full(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Slice:
		return reflect.MakeSlice(t, 1, 1)
	case reflect.Pointer:
		return reflect.New(t.Elem())
	case reflect.Struct:
		v.Set(reflect.ValueOf(time.Unix(2, 0)))
	}
	return v
}

func TestFree(t *testing.T) {
	d := open(t, t.TempDir()+"/state")
	id, other := "anthropic/a", "openai/b"
	put := func(l Limiter) {
		t.Helper()
		if _, err := d.Update(t.Context(), func(old Ledger) (Ledger, []Event) {
			old.Limiters[l.ID] = l
			return old, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(Limiter{ID: other, Holds: []Hold{{Class: finding.Rate, Until: time.Now()}}})
	if !d.Free([]string{id}) {
		t.Error("a limiter without a file is not free beside another's hold")
	}
	put(Limiter{ID: id, Label: "A"})
	if !d.Free([]string{id}) {
		t.Error("a label is more than a name")
	}
	if d.Free([]string{id, other}) {
		t.Error("a hold on the second of two is passed over")
	}
	put(Limiter{ID: id + "#opus", Cap: &Cap{K: 2}})
	if d.Free([]string{id}) {
		t.Error("a cap on a part of it is passed over")
	}
}
