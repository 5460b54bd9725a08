package account

import (
	"net/url"
	"strings"
)

// at applies a base URL: a host that is not one of the provider's own is a
// provider of its own, named by host and port. Userinfo and path may hold a
// secret: they never show, and only tell accounts apart through the hash.
func (l *Launch) at(w who, base string, own ...string) who {
	base = strings.TrimSpace(base)
	if base == "" {
		return w
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		w.provider = "gateway"
		if w.account != "" {
			w.account = l.hash("base", base, w.account)
		}
		return w
	}
	host := strings.ToLower(u.Host)
	for _, o := range own {
		if host == o || strings.HasPrefix(o, ".") && strings.HasSuffix(host, o) {
			return w
		}
	}
	w.provider = slug(host)
	if w.provider == "" {
		w.provider = "gateway"
	}
	if extra := strings.TrimSuffix(u.Path, "/"); u.User != nil || extra != "" && extra != "/v1" {
		user := ""
		if u.User != nil {
			user = u.User.String()
		}
		if w.account != "" {
			w.account = l.hash("base", user, extra, w.account)
		}
	}
	w.label += " at " + w.provider
	return w
}

// slug turns a name into the alphabet of limiter IDs (without @), at most 48
// bytes; what does not fit becomes a dash.
func slug(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s) && len(b) < 48; i++ {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '-':
			b = append(b, '-')
		}
	}
	return strings.Trim(string(b), "-.")
}
