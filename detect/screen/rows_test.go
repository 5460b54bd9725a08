package screen

import (
	"fmt"
	"strings"
	"testing"
)

// rowCase is bytes and what then stands on the screen.
type rowCase struct {
	name       string
	cols, rows int
	in         string
	want       []string // rows from the top; the rest is empty
	x, y       int
	differs    string // why tmux shows something else; empty: it must agree
}

var rowCases = []rowCase{
	{"cup clamps", 10, 3, "\x1b[99;99Hx\x1b[1;1Ha", []string{"a", "", "         x"}, 1, 0, ""},
	{"cha vpa", 10, 3, "\x1b[3Ga\x1b[2db\x1b[5`c", []string{"  a", "   bc"}, 5, 1, ""},
	{"relative", 10, 3, "\x1b[2Ba\x1b[Ab\x1b[3Cc\x1b[4Dd", []string{"", " bd  c", "a"}, 3, 1, ""},
	{"cnl cpl", 10, 4, "abc\x1b[2Ed\x1b[Fe", []string{"abc", "e", "d"}, 1, 1, ""},
	{"hpr vpr", 10, 4, "\x1b[2aa\x1b[eb", []string{"  a", "   b"}, 4, 1, "tmux 3.3a knows no VPR and HPR"},
	{"zero counts as one", 10, 3, "a\x1b[0Cb\x1b[0Dc", []string{"a c"}, 3, 0, ""},
	{"huge counts", 10, 3, "a\x1b[2000000000C\x1b[2000000000Bb\x1b[2000000000Dc\x1b[2000000000Ad", []string{"ad", "", "c        b"}, 2, 0, ""},
	{"el", 10, 3, "abcdef\x1b[3G\x1b[K\r\nabcdef\x1b[3G\x1b[1K\r\nabcdef\x1b[2K", []string{"ab", "   def"}, 6, 2, ""},
	{"ed below", 5, 3, "aaa\r\nbbb\r\nccc\x1b[2;2H\x1b[J", []string{"aaa", "b"}, 1, 1, ""},
	{"ed above", 5, 3, "aaa\r\nbbb\r\nccc\x1b[2;2H\x1b[1J", []string{"", "  b", "ccc"}, 1, 1, ""},
	{"ed all", 5, 3, "aaa\r\nbbb\x1b[2J", nil, 3, 1, ""},
	{"ed history", 5, 2, "aaa\r\nbbb\r\nccc\x1b[3J", []string{"bbb", "ccc"}, 3, 1, ""},
	{"ech", 10, 1, "abcdef\x1b[2G\x1b[3X", []string{"a   ef"}, 1, 0, ""},
	{"ich", 6, 1, "abcdef\x1b[2G\x1b[2@", []string{"a  bcd"}, 1, 0, ""},
	{"dch", 6, 1, "abcdef\x1b[2G\x1b[2P", []string{"adef"}, 1, 0, ""},
	{"dch huge", 6, 1, "abcdef\x1b[2G\x1b[99999P", []string{"a"}, 1, 0, ""},
	{"il", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;2H\x1b[L", []string{"a", "", "b", "c"}, 1, 1, ""},
	{"dl", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;2H\x1b[2M", []string{"a", "d"}, 1, 1, ""},
	{"il in region", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2;1H\x1b[L", []string{"a", "", "b", "d"}, 0, 1, ""},
	{"dl in region", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2;1H\x1b[M", []string{"a", "c", "", "d"}, 0, 1, ""},
	{"il outside", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[1;1H\x1b[L", []string{"a", "b", "c", "d"}, 0, 0, "tmux inserts there, xterm does not"},
	{"dl outside", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[1;1H\x1b[M", []string{"a", "b", "c", "d"}, 0, 0, "tmux deletes there, xterm does not"},
	{"dl below", 5, 4, "a\r\nb\r\nc\r\nd\x1b[1;2r\x1b[4;1H\x1b[M", []string{"a", "b", "c", "d"}, 0, 3, "tmux deletes there, xterm does not"},
	{"su", 5, 3, "a\r\nb\r\nc\x1b[2S", []string{"c"}, 1, 2, ""},
	{"sd", 5, 3, "a\r\nb\r\nc\x1b[T", []string{"", "a", "b"}, 1, 2, ""},
	{"su region", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[S", []string{"a", "c", "", "d"}, 0, 0, ""},
	{"region scroll", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3;1H\nx", []string{"a", "c", "x", "d"}, 1, 2, ""},
	{"lf below region", 5, 4, "a\x1b[1;2r\x1b[4;1Hz\ny", []string{"a", "", "", "zy"}, 2, 3, ""},
	{"ri", 5, 3, "a\r\nb\x1b[1;1H\x1bMx", []string{"x", "a", "b"}, 1, 0, ""},
	{"ri region", 5, 4, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2;1H\x1bMx", []string{"a", "x", "b", "d"}, 1, 1, ""},
	{"ind nel", 5, 3, "a\x1bDb\x1bEc", []string{"a", " b", "c"}, 1, 2, ""},
	{"region too small", 5, 4, "\x1b[3;3rab", []string{"ab"}, 2, 0, ""},
	{"region reset", 5, 3, "\x1b[1;2r\x1b[r\x1b[3;1Ha\nb", []string{"", "a", " b"}, 2, 2, ""},
	{"region clamps", 5, 3, "\x1b[2;99r\x1b[99;1Ha\nb", []string{"", "a", " b"}, 2, 2, ""},
	{"cuu stops at region", 5, 5, "\x1b[2;4r\x1b[3;1H\x1b[9Aa\x1b[9Bb", []string{"", "a", "", " b"}, 2, 3, ""},
	{"cuu outside region", 5, 5, "\x1b[3;4r\x1b[2;1H\x1b[9Aa", []string{"a"}, 1, 0, ""},
	{"origin", 5, 5, "\x1b[2;4r\x1b[?6ha\x1b[99;1Hb\x1b[2;1Hc\x1b[?6ld", []string{"d", "a", "c", "b"}, 1, 0, ""},
	{"wrap", 5, 3, "abcdefg", []string{"abcde", "fg"}, 2, 1, ""},
	{"pending wrap", 5, 3, "abcde", []string{"abcde"}, 4, 0, ""},
	{"pending wrap cr", 5, 3, "abcde\rx", []string{"xbcde"}, 1, 0, ""},
	{"pending wrap bs", 5, 3, "abcde\bx", []string{"abcdx"}, 4, 0, ""},
	{"pending wrap cub", 5, 3, "abcde\x1b[Dx", []string{"abcxe"}, 4, 0, "tmux counts from behind the last column"},
	{"pending wrap lf", 5, 3, "abcde\nx", []string{"abcde", "    x"}, 4, 1, "tmux keeps the pending wrap"},
	{"pending wrap el", 5, 3, "abcde\x1b[K", []string{"abcde"}, 4, 0, ""},
	{"pending wrap cuf", 5, 3, "abcde\x1b[Cx", []string{"abcdx"}, 4, 0, ""},
	{"pending wrap cuu", 5, 3, "\r\nabcde\x1b[Ax", []string{"    x", "abcde"}, 4, 0, ""},
	{"pending wrap sgr", 5, 3, "abcde\x1b[1mx", []string{"abcde", "x"}, 1, 1, ""},
	{"pending wrap tab", 5, 3, "abcde\tx", []string{"abcde", "x"}, 1, 1, ""},
	{"no wrap", 5, 3, "\x1b[?7labcdefg", []string{"abcdg"}, 4, 0, ""},
	{"no wrap wide", 5, 3, "\x1b[?7labcd世", []string{"abcd"}, 4, 0, ""},
	{"wrap scrolls", 3, 2, "abcdefghi", []string{"def", "ghi"}, 2, 1, ""},
	{"bs", 5, 2, "ab\b\b\b\bx", []string{"xb"}, 1, 0, ""},
	{"tabs", 20, 2, "a\tb\tc\td", []string{"a       b       c  d"}, 19, 0, ""},
	{"hts tbc", 20, 2, "\x1b[3g\x1b[5G\x1bH\ra\tb\tc", []string{"a   b              c"}, 19, 0, ""},
	{"tbc one", 20, 2, "\x1b[9G\x1b[g\ra\tb", []string{"a               b"}, 17, 0, ""},
	{"cbt", 20, 2, "\x1b[18G\x1b[Za\x1b[2Zb", []string{"        b       a"}, 9, 0, ""},
	{"cht", 20, 2, "\x1b[2Ia", []string{"                a"}, 17, 0, "tmux 3.3a knows no CHT"},
	{"rep", 10, 2, "ab\x1b[3bc", []string{"abbbbc"}, 6, 0, ""},
	{"rep huge", 10, 2, "a\x1b[2000000000bc", []string{"aaaaaaaaaa", "c"}, 1, 1, ""},
	{"rep after sgr", 10, 2, "a\x1b[m\x1b[3bc", []string{"ac"}, 2, 0, ""},
	{"rep of wide", 10, 2, "世\x1b[3bc", []string{"世c"}, 3, 0, ""},
	{"insert mode", 6, 2, "abc\x1b[1G\x1b[4hxy\x1b[4lz", []string{"xyzbc"}, 3, 0, ""},
	{"newline mode", 6, 3, "\x1b[20hab\nc", []string{"ab", "c"}, 1, 1, "tmux 3.3a knows no newline mode"},
	{"line drawing", 6, 2, "\x1b(0lqk\x1b(Bq", []string{"┌─┐q"}, 4, 0, ""},
	{"so si", 6, 2, "\x1b)0a\x0eqx\x0fq", []string{"a─│q"}, 4, 0, ""},
	{"decsc decrc", 8, 3, "\x1b[1;31mab\x1b7\x1b[m\x1b[3;3Hc\x1b8d", []string{"abd", "", "  c"}, 3, 0, ""},
	{"decrc unsaved", 8, 3, "\x1b[3;3Hc\x1b8d", []string{"d", "", "  c"}, 1, 0, ""},
	{"scosc", 8, 3, "ab\x1b[s\x1b[3;3Hc\x1b[ud", []string{"abd", "", "  c"}, 3, 0, ""},
	{"decaln", 3, 2, "\x1b#8", []string{"EEE", "EEE"}, 0, 0, ""},
	{"1049", 6, 3, "ab\r\nc\x1b[?1049hX\x1b[?1049ld", []string{"ab", "cd"}, 2, 1, ""},
	{"1049 shows blank", 6, 3, "ab\r\nc\x1b[?1049hX", []string{"", " X"}, 2, 1, ""},
	{"1047", 6, 3, "ab\x1b[?1047hX\x1b[?1047ld", []string{"ab d"}, 4, 0, ""},
	{"47 twice", 6, 3, "ab\x1b[?47hX\x1b[?47hY\x1b[?47lc", []string{"ab  c"}, 5, 0, ""},
	{"1049 in alt", 6, 3, "ab\x1b[?1049hX\x1b[?1049hY", []string{"  XY"}, 4, 0, ""},
	{"1048", 6, 3, "ab\x1b[?1048h\x1b[3;3Hx\x1b[?1048lc", []string{"abc", "", "  x"}, 3, 0, "tmux 3.3a knows no ?1048"},
	{"wide", 6, 2, "世界", []string{"世界"}, 4, 0, ""},
	{"wide wraps early", 5, 2, "abcd世", []string{"abcd", "世"}, 2, 1, ""},
	{"wide in the last columns", 6, 2, "abcd世x", []string{"abcd世", "x"}, 1, 1, ""},
	{"over the first half", 6, 2, "世界\x1b[1Gx", []string{"x 界"}, 1, 0, ""},
	{"over the second half", 6, 2, "世界\x1b[2Gx", []string{" x界"}, 2, 0, "tmux keeps the first half"},
	{"wide over two", 6, 2, "世界\x1b[2G語", []string{" 語"}, 3, 0, ""},
	{"erase half", 6, 2, "世界\x1b[2G\x1b[X", []string{"  界"}, 1, 0, "tmux keeps the first half"},
	{"delete half", 6, 2, "世界\x1b[2G\x1b[P", []string{" 界"}, 1, 0, "tmux keeps the first half"},
	{"combining", 6, 2, "e\u0301x\u0323\u0301y", []string{"e\u0301x\u0323\u0301y"}, 3, 0, ""},
	{"combining at the end", 3, 2, "abe\u0301f", []string{"abe\u0301", "f"}, 1, 1, ""},
	{"combining alone", 6, 2, "\u0301x", []string{"x"}, 1, 0, ""},
	{"combining on wide", 6, 2, "世\u0301x", []string{"世\u0301x"}, 3, 0, ""},
	{"zwj", 8, 2, "👨\u200d👩x", []string{"👨\u200d👩x"}, 3, 0, ""},
	{"zwj family", 8, 2, "👨\u200d👩\u200d👧x", []string{"👨\u200d👩\u200d👧x"}, 3, 0, ""},
	{"skin tone", 8, 2, "👍🏽x", []string{"👍🏽x"}, 5, 0, ""},
	{"vs16", 8, 2, "❤\ufe0fx", []string{"❤\ufe0fx"}, 2, 0, ""},
	{"flag", 8, 2, "🇺🇸x", []string{"🇺🇸x"}, 3, 0, ""},
	{"hangul jamo", 8, 2, "\u1112\u1161\u11abx", []string{"\u1112\u1161\u11abx"}, 3, 0, ""},
	{"soft hyphen", 8, 2, "a\u00adb", []string{"a\u00adb"}, 3, 0, ""},
	{"nbsp stays", 8, 2, "a\u00a0\x1b[1;8H", []string{"a\u00a0"}, 7, 0, ""},
	{"claude glyphs", 20, 2, "✳ ⏺ ⎿ ❯ ◐ ▐▛█", []string{"✳ ⏺ ⎿ ❯ ◐ ▐▛█"}, 13, 0, ""},
	{"c1 as utf-8", 8, 2, "a\u0085b\u009bc", []string{"abc"}, 3, 0, ""},
	{"c1 bytes", 8, 2, "a\x9bHb", []string{"a\ufffdHb"}, 4, 0, "tmux drops invalid bytes"},
	{"invalid", 12, 2, "a\xffb\xe2\x82c\xf0\x9f\x98d\xc0\xaf", []string{"a\ufffdb\ufffdc\ufffdd\ufffd\ufffd"}, 9, 0, "tmux drops invalid bytes"},
	{"controls in a sequence", 8, 3, "\x1b[2\rC\x1b[1\nGx", []string{"", "x"}, 1, 1, ""},
	{"can aborts", 8, 2, "a\x1b[3\x18Cb", []string{"aCb"}, 3, 0, ""},
	{"esc restarts", 8, 2, "a\x1b[3\x1b[Cb", []string{"a b"}, 3, 0, ""},
	{"unknown sequences", 8, 2, "a\x1b[?1;2;3$wb\x1b[5 Ac\x1b%Gd\x1b*0e", []string{"abcde"}, 5, 0, ""},
	{"osc by bel", 20, 2, "\x1b]0;✳ t\x07a", []string{"a"}, 1, 0, ""},
	{"osc by st", 20, 2, "\x1b]2;✳ t\x1b\\a", []string{"a"}, 1, 0, ""},
	{"osc 8", 20, 2, "\x1b]8;id=1;http://x\x1b\\link\x1b]8;;\x1b\\.", []string{"link."}, 5, 0, ""},
	{"dcs apc pm sos", 20, 2, "\x1bPq#0\nabc\x1b\\a\x1b_Gi=31;AA\x1b\\b\x1b^x\x1b\\c\x1bXy\x1b\\d\x1bkname\x1b\\e", []string{"abcde"}, 5, 0, ""},
	{"bel in dcs", 20, 2, "\x1bPa\x07b\x1b\\c", []string{"c"}, 1, 0, ""},
	{"osc 7501", 20, 2, "\x1b]7501;state=working:app=codex\x1b\\x", []string{"x"}, 1, 0, ""},
	{"kitty and friends", 20, 2, "\x1b[>5u\x1b[<u\x1b[=1;2u\x1b[>4;2m\x1b[?u\x1b[>0qx", []string{"x"}, 1, 0, ""},
	{"sync", 20, 2, "\x1b[?2026hx\x1b[?2026l", []string{"x"}, 1, 0, ""},
	{"decstr", 6, 4, "\x1b[2;3r\x1b[?6h\x1b[4h\x1b[!p\x1b[Hab\x1b[Hc", []string{"cb"}, 1, 0, "tmux 3.3a knows no DECSTR"},
	{"ris", 6, 3, "\x1b[1;2r\x1b[?7l\x1b[4hab\x1bccdefghi", []string{"cdefgh", "i"}, 1, 1, ""},
	{"ris in alt", 6, 3, "a\x1b[?1049hb\x1bcc", []string{"c"}, 1, 0, ""},
	{"one column", 1, 3, "abcd", []string{"b", "c", "d"}, 0, 2, ""},
	{"claude start", 20, 3, "\x1b7\x1b[r\x1b8\x1b[?25h\x1b[?2004hok:\x1b[7Gmock", []string{"ok:   mock"}, 10, 0, ""},
	{"codex insert", 6, 6, "\x1b[5;6H\x1b[2;4r\x1b[2;1H\x1bM\x1bM\x1b[r\x1b[2;1Hx", []string{"", "x"}, 1, 1, ""},
}

func TestRows(t *testing.T) {
	for _, c := range rowCases {
		t.Run(c.name, func(t *testing.T) {
			s := New(c.cols, c.rows)
			_, _ = s.Write([]byte(c.in))
			if got, want := wantRows(c), shootScreen(s); got.diffText(want) != "" {
				t.Error(got.diffText(want))
			}
		})
	}
}

// TestRowsAgainstTmux holds the table itself against the real tmux: agreement
// where the table claims it, and a difference where it names one.
func TestRowsAgainstTmux(t *testing.T) {
	parent := t
	tm := startTmux(t, 80, 24)
	for _, c := range rowCases {
		t.Run(c.name, func(t *testing.T) {
			tm.t = t
			defer func() { tm.t = parent }()
			tm.reset(c.cols, c.rows)
			tm.write([]byte(c.in))
			d := wantRows(c).diffText(tm.shoot(c.cols, c.rows))
			if c.differs == "" && d != "" {
				t.Errorf("want, then tmux:\n%s", d)
			}
			if c.differs != "" && d == "" {
				t.Errorf("tmux agrees, against %q", c.differs)
			}
		})
	}
}

func wantRows(c rowCase) shot {
	sh := shot{x: c.x, y: c.y, rows: make([]string, c.rows)}
	copy(sh.rows, c.want)
	return sh
}

// diffText compares rows and cursor only.
func (sh shot) diffText(other shot) string {
	if sh.x == other.x && sh.y == other.y && strings.Join(sh.rows, "\n") == strings.Join(other.rows, "\n") {
		return ""
	}
	return fmt.Sprintf("%q at %d,%d\n%q at %d,%d", sh.rows, sh.x, sh.y, other.rows, other.x, other.y)
}
