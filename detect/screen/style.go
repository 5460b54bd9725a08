package screen

// Color is a cell's colour: the default, one of the 256 of the palette, or an
// RGB value. The zero Color is the default.
type Color uint32

const (
	colorIndex Color = 1 << 24
	colorRGB   Color = 2 << 24
	colorKind  Color = 3 << 24
)

// Index is the palette colour i (0-255).
func Index(i uint8) Color { return colorIndex | Color(i) }

// RGB is the colour of three components.
func RGB(r, g, b uint8) Color {
	return colorRGB | Color(r)<<16 | Color(g)<<8 | Color(b)
}

// Default reports whether c is the terminal's own colour.
func (c Color) Default() bool { return c == 0 }

// Index is the palette index, if c is a palette colour. 38;5;1 and 31 are the
// same colour.
func (c Color) Index() (i uint8, ok bool) {
	return uint8(c), c&colorKind == colorIndex
}

// RGB is the three components, if c is an RGB colour.
func (c Color) RGB() (r, g, b uint8, ok bool) {
	return uint8(c >> 16), uint8(c >> 8), uint8(c), c&colorKind == colorRGB
}

// Attr is a set of character attributes.
type Attr uint16

// The attributes of SGR.
const (
	Bold Attr = 1 << iota
	Dim
	Italic
	Underline // of any kind, see Style.Line
	Blink
	Reverse
	Invisible
	Strike
	Overline
)

// Style is how a cell is drawn. It is comparable.
type Style struct {
	Fg, Bg     Color
	UnderColor Color
	Attr       Attr
	Line       uint8 // kind of underline: 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed
	Link       bool  // part of an OSC 8 hyperlink
}
