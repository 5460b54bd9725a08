package detect

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// pattern is a regular expression of a profile. It is checked when the profile
// is read and compiled at its first use: most sessions never meet most rules,
// and compiling all of them would cost each start some milliseconds.
type pattern struct {
	src  string
	once sync.Once
	re   *regexp.Regexp
	need []string // one of them is in every text that fits; nil: not known
}

// newPattern checks src.
func newPattern(src string) (*pattern, error) {
	re, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return &pattern{src: src, need: literals(re)}, nil
}

// maxLiterals bounds how many literals a pattern may ask for before it counts
// as asking for none.
const maxLiterals = 40

// literals returns words of which one is in every text that re fits, nil where
// there is none to be sure of. They hold no blanks: a wrap can be anywhere.
func literals(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return nil
		}
		best := ""
		for _, w := range strings.Fields(string(re.Rune)) {
			if isHot(w, hotWords) {
				return []string{w}
			}
			if len(w) > len(best) {
				best = w
			}
		}
		if len(best) < 3 {
			return nil // as good as everywhere
		}
		return []string{best}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, s := range re.Sub {
			if l := literals(s); worth(l) > worth(best) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, s := range re.Sub {
			l := literals(s)
			if l == nil || len(all)+len(l) > maxLiterals {
				return nil
			}
			all = append(all, l...)
		}
		return all
	}
	return nil
}

// worth is how well words tell rows apart: those that are looked for anyway are
// best, else the length of the shortest; 0 for none.
func worth(words []string) int {
	n, new := 0, false
	for _, w := range words {
		if n == 0 || len(w) < n {
			n = len(w)
		}
		new = new || !isHot(w, hotWords)
	}
	if n > 0 && !new {
		return 1000
	}
	return n
}

// ownPattern is a pattern of this package: compiled at its first use like those
// of the profiles, as each start of qshim would pay for all of them.
func ownPattern(src string) *pattern {
	p := &pattern{src: src}
	ownPatterns = append(ownPatterns, p)
	return p
}

var ownPatterns []*pattern // a test compiles them all

// regexp is the compiled pattern. One that cannot be compiled after all (it
// is too large) matches nothing.
func (p *pattern) regexp() *regexp.Regexp {
	p.once.Do(func() {
		re, err := regexp.Compile(p.src)
		if err != nil {
			re = regexp.MustCompile(`[^\x00-\x{10FFFF}]`)
		}
		p.re = re
	})
	return p.re
}

// MatchString reports whether the pattern is somewhere in s.
func (p *pattern) MatchString(s string) bool { return p.regexp().MatchString(s) }

// opening is the set of runes with which a row can begin that an anchored
// pattern fits, blanks aside: a row beginning with another rune need not be
// asked. It keeps the price of a row that fits nothing to a few table look-ups.
type opening struct {
	any    bool
	low    [2]uint64     // runes below 128
	ranges []syntaxRange // the others
}

type syntaxRange struct{ lo, hi rune }

// openingOf walks the compiled pattern over blanks to everything that can
// come first.
func openingOf(src string) opening {
	var o opening
	parsed, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return opening{any: true}
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return opening{any: true}
	}
	// A branch without ^ can match anywhere: then any row must be asked.
	seen := map[bool][]bool{false: make([]bool, len(prog.Inst)), true: make([]bool, len(prog.Inst))}
	var walk func(pc uint32, anchored bool)
	walk = func(pc uint32, anchored bool) {
		if seen[anchored][pc] {
			return
		}
		seen[anchored][pc] = true
		in := &prog.Inst[pc]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			walk(in.Out, anchored)
			walk(in.Arg, anchored)
		case syntax.InstCapture, syntax.InstNop:
			walk(in.Out, anchored)
		case syntax.InstEmptyWidth:
			walk(in.Out, anchored || syntax.EmptyOp(in.Arg)&syntax.EmptyBeginText != 0)
		case syntax.InstMatch:
			o.any = true // the pattern can end before any rune
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			o.any = o.any || !anchored
			o.add(in)
			if in.MatchRune(' ') {
				walk(in.Out, anchored)
			}
		}
	}
	walk(uint32(prog.Start), false)
	return o
}

// add takes the runes of one instruction.
func (o *opening) add(in *syntax.Inst) {
	if in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL || len(in.Rune) == 0 || syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
		o.any = true
		return
	}
	if len(in.Rune) == 1 {
		o.addRange(in.Rune[0], in.Rune[0])
		return
	}
	for i := 0; i+1 < len(in.Rune); i += 2 {
		o.addRange(in.Rune[i], in.Rune[i+1])
	}
}

func (o *opening) addRange(lo, hi rune) {
	for r := lo; r <= hi && r < utf8.RuneSelf; r++ {
		o.low[r>>6] |= 1 << (r & 63)
	}
	if hi >= utf8.RuneSelf {
		o.ranges = append(o.ranges, syntaxRange{max(lo, utf8.RuneSelf), hi})
	}
}

// has reports whether a row may begin with r.
func (o *opening) has(r rune) bool {
	if o.any {
		return true
	}
	if r >= 0 && r < utf8.RuneSelf {
		return o.low[r>>6]>>(r&63)&1 == 1
	}
	for _, x := range o.ranges {
		if x.lo <= r && r <= x.hi {
			return true
		}
	}
	return false
}

// firstRune is the first rune of a row that is no blank.
func firstRune(text string) rune {
	for _, r := range text {
		if r != ' ' {
			return r
		}
	}
	return 0
}
