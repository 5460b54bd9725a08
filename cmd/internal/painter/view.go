package painter

import (
	"fmt"
	"strings"
	"time"
)

// entry is a row or block of the transcript.
type entry struct {
	glyph     string
	glyphPen  style
	text      string
	pen       style
	indentTwo bool // "  ⎿  ": the client's own row
}

// model is everything that is on the screen.
type model struct {
	o       Options
	log     []entry
	answer  string // of the call in progress
	tokens  int
	busy    bool
	began   time.Time // of the turn
	retry   *update   // the client's retry in progress
	hint    string    // in the empty input line
	input   string
	frame   int // of the spinner
	version string
}

// The glyphs of Claude Code's spinner and of its title while it works.
var (
	spinner   = []string{"·", "✢", "✳", "✶", "✻", "✽"}
	busyMarks = []string{"◐", "◑"}
)

// title alternates while a turn runs, once in about a second.
func (m *model) title() string {
	if !m.busy {
		return "✳ Claude Code"
	}
	return busyMarks[m.frame/10%len(busyMarks)] + " Claude Code"
}

// take brings an update into the picture.
func (m *model) take(u update, now time.Time) {
	if u.kind != partCame && u.kind != retrying {
		m.retry = nil
	}
	switch u.kind {
	case callBegan:
		m.answer = ""
	case partCame:
		m.retry = nil
		m.answer += u.text
		m.tokens += len(u.text)/4 + 1
	case retrying:
		m.retry = &u
		m.answer = ""
	case callDone:
		m.say("●", white, m.answer, plain)
		m.answer = ""
	case taskDone:
		m.busy = false
		m.say("✻", grey, fmt.Sprintf("Worked for %ds · done %s", int(now.Sub(m.began).Seconds()), now.Format("3:04 PM")), grey)
	case taskFailed:
		m.busy, m.answer, m.hint = false, "", u.hint
		if u.own {
			m.log = append(m.log, entry{glyph: "⎿", glyphPen: grey, text: u.text, pen: red, indentTwo: true})
			return
		}
		m.say("●", amber, u.text, plain)
	}
}

func (m *model) say(glyph string, glyphPen style, text string, pen style) {
	m.log = append(m.log, entry{glyph: glyph, glyphPen: glyphPen, text: text, pen: pen})
}

// begin starts a turn with the user's prompt.
func (m *model) begin(prompt string, now time.Time) {
	m.say("❯", grey, prompt, plain)
	m.busy, m.began, m.hint, m.input, m.tokens = true, now, "", "", 0
}

// rows lays the screen out: header, transcript from the top, input at the bottom.
func (m *model) rows(cols, rows int, now time.Time) [][]span {
	head := [][]span{
		nil,
		{{" ▐▛███▛█   ", orange}, {"Claude Code", bold}, {" painter", grey}},
		{{"▝▜██████▀  ", orange}, {"scripted · API Usage Billing", grey}},
		{{" ▝▝   ▝▝   ", orange}, {m.o.Name, grey}},
		nil,
	}
	foot := m.foot(cols)
	body := m.body(cols, now)
	room := max(rows-len(foot), 0)
	all := append(head, body...)
	if len(all) > room {
		all = all[len(all)-room:]
	}
	for len(all) < room {
		all = append(all, nil)
	}
	return append(all, foot...)
}

func (m *model) foot(cols int) [][]span {
	line := []span{{strings.Repeat("─", cols), ruler}}
	input := []span{{"❯\u00a0", plain}, {m.input, plain}}
	if m.input == "" && m.hint != "" {
		input = []span{{"❯\u00a0", plain}, {m.hint, dim}}
	}
	state := "  ⏵⏵ auto mode on"
	if m.busy {
		state += " · esc to interrupt"
	}
	return [][]span{line, input, line, {{state, amber}}}
}

// body is the transcript with the turn in progress.
func (m *model) body(cols int, now time.Time) [][]span {
	var out [][]span
	for _, e := range m.log {
		out = append(append(out, e.lay(cols)...), nil)
	}
	if !m.busy {
		return out
	}
	if m.answer != "" {
		e := entry{glyph: "●", glyphPen: white, text: m.answer}
		out = append(append(out, e.lay(cols)...), nil)
	}
	if m.retry != nil {
		return append(out, m.retryRow(cols, now), nil)
	}
	work := fmt.Sprintf("Working… (%ds · ↓ %d tokens)", int(now.Sub(m.began).Seconds()), m.tokens)
	return append(out, []span{{spinner[m.frame/2%len(spinner)] + " ", orange}, {work, orange}}, nil)
}

// retryRow cuts the reason so that the rest fits, as the real one does.
func (m *model) retryRow(cols int, now time.Time) []span {
	left := max(int((m.retry.until.Sub(now)+time.Second-1)/time.Second), 0)
	wait := fmt.Sprintf(" · retrying in %ds · attempt %d/%d", left, m.retry.attempt, m.o.Attempts)
	if left == 0 {
		wait = fmt.Sprintf(" · retrying… · attempt %d/%d", m.retry.attempt, m.o.Attempts)
	}
	text := []rune(m.retry.text)
	if room := cols - 2 - len([]rune(wait)); len(text) > room {
		text = append(text[:max(room-1, 0)], '…')
	}
	return []span{{"✻ ", red}, {string(text), red}, {wait, grey}}
}

// lay wraps an entry at words into the width, with the real one's indents.
func (e entry) lay(cols int) [][]span {
	first, indent := e.glyph+" ", "  "
	if e.indentTwo {
		first, indent = "  "+e.glyph+" \u00a0", "     "
	}
	var out [][]span
	for i, line := range wrap(e.text, max(cols-len(indent), 1)) {
		lead := span{first, e.glyphPen}
		if i > 0 {
			lead = span{indent, plain}
		}
		out = append(out, []span{lead, {line, e.pen}})
	}
	return out
}

// wrap breaks text at blanks; a word longer than the width is cut.
func wrap(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		for len([]rune(word)) > width {
			if line != "" {
				out, line = append(out, line), ""
			}
			r := []rune(word)
			out, word = append(out, string(r[:width])), string(r[width:])
		}
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			out, line = append(out, line), word
		}
	}
	return append(out, line)
}
