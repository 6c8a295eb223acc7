// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names translates the names of users and groups. SystemNames has those of the host.
type Names interface {
	// User and Group return the number of a name.
	User(name string) (uint32, error)
	Group(name string) (uint32, error)
	// UserName and GroupName return a name, or "" if there is none.
	UserName(id uint32) string
	GroupName(id uint32) string
}

// SystemNames has the users and groups of the host.
type SystemNames struct{}

// User returns the number of a user.
func (SystemNames) User(name string) (uint32, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	return parseID(u.Uid)
}

// Group returns the number of a group.
func (SystemNames) Group(name string) (uint32, error) {
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	return parseID(g.Gid)
}

// UserName returns the name of a user.
func (SystemNames) UserName(id uint32) string {
	u, err := user.LookupId(strconv.FormatUint(uint64(id), 10))
	if err != nil {
		return ""
	}
	return u.Username
}

// GroupName returns the name of a group.
func (SystemNames) GroupName(id uint32) string {
	g, err := user.LookupGroupId(strconv.FormatUint(uint64(id), 10))
	if err != nil {
		return ""
	}
	return g.Name
}

func parseID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// SyntaxError reports an invalid rule. Its text is one line that names the word and, if there is one, the remedy.
type SyntaxError struct {
	// File and Line say where the rule is; Line is 0 for one that is not in a file.
	File string
	Line int
	// Word is the number of the word, from 1; 0 if the rule as a whole is wrong.
	Word int
	// Text names the mistake, and Remedy the action to take; Remedy may be empty.
	Text, Remedy string
}

func (e *SyntaxError) Error() string {
	var where string
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d: ", e.File, e.Line)
	}
	if e.Word > 0 {
		where += fmt.Sprintf("word %d: ", e.Word)
	}
	if e.Remedy != "" {
		return where + e.Text + ": " + e.Remedy
	}
	return where + e.Text
}

// Parse parses a rule: a verdict and conditions, such as "smc", "port", "6379,8000-8100". The error is a *SyntaxError.
func Parse(words []string, names Names) (Rule, error) {
	p := parser{words: words, names: names, rule: Rule{Role: Any}, peers: Any}
	if err := p.parse(); err != nil {
		return Rule{}, err
	}
	return p.rule, nil
}

type parser struct {
	words []string
	names Names
	rule  Rule
	// peers are the roles that the condition about networks is for.
	peers Role
	seen  []string
}

// conditions are the words that begin one, with what parses the word after it.
var conditions = map[string]func(p *parser, value string) error{
	"name":   (*parser).name,
	"role":   (*parser).role,
	"user":   func(p *parser, v string) (err error) { p.rule.User, err = id("user", v, p.names.User); return err },
	"group":  func(p *parser, v string) (err error) { p.rule.Group, err = id("group", v, p.names.Group); return err },
	"cgroup": (*parser).cgroup,
	"port":   func(p *parser, v string) (err error) { p.rule.Ports, err = ports(v); return err },
	"local":  func(p *parser, v string) (err error) { p.rule.LocalPorts, err = ports(v); return err },
	"remote": func(p *parser, v string) (err error) { p.rule.RemotePorts, err = ports(v); return err },
	"to":     func(p *parser, v string) error { return p.networks(v, Connect) },
	"from":   func(p *parser, v string) error { return p.networks(v, Listen) },
	"peer":   func(p *parser, v string) error { return p.networks(v, Any) },
}

// ConditionWords are the words that begin a condition, in the order in which they are written.
var ConditionWords = []string{"name", "role", "user", "group", "cgroup", "port", "local", "remote", "to", "from", "peer"}

func (p *parser) parse() error {
	if len(p.words) == 0 {
		return &SyntaxError{Text: "a rule begins with smc, tcp or auto"}
	}
	switch p.words[0] {
	case "smc":
		p.rule.Verdict = SMC
	case "tcp":
		p.rule.Verdict = TCP
	case "auto":
		p.rule.Verdict = Auto
	default:
		return &SyntaxError{Word: 1, Text: fmt.Sprintf("%q: a rule begins with smc, tcp or auto", p.words[0])}
	}
	for i := 1; i < len(p.words); i += 2 {
		if err := p.condition(i); err != nil {
			return err
		}
	}
	if p.rule.Role&p.peers == 0 {
		return &SyntaxError{Text: "to is for clients (role connect), from is for servers (role listen), peer is for both"}
	}
	p.rule.Role &= p.peers
	if p.rule.Role == Listen && len(p.rule.RemotePorts) > 0 {
		return &SyntaxError{Text: "remote is for clients: the ports of a server's clients are not asked for"}
	}
	return nil
}

func (p *parser) condition(i int) error {
	word := p.words[i]
	f, ok := conditions[word]
	switch {
	case !ok:
		return &SyntaxError{Word: i + 1, Text: fmt.Sprintf("%q: conditions are %s", word, strings.Join(ConditionWords, ", "))}
	case slices.Contains(p.seen, word):
		return &SyntaxError{Word: i + 1, Text: word + " is there already", Remedy: "a list has commas"}
	case i+1 == len(p.words):
		return &SyntaxError{Word: i + 1, Text: fmt.Sprintf("the value of %s is missing", word)}
	}
	p.seen = append(p.seen, word)
	if err := f(p, p.words[i+1]); err != nil {
		text, remedy := err.Error(), ""
		if e, ok := err.(*SyntaxError); ok {
			text, remedy = e.Text, e.Remedy
		}
		return &SyntaxError{Word: i + 2, Text: fmt.Sprintf("%s %q: %s", word, p.words[i+1], text), Remedy: remedy}
	}
	return nil
}

// networks parses those of the peer; roles are those whose peers the word is about.
func (p *parser) networks(v string, roles Role) (err error) {
	if len(p.rule.Networks) > 0 {
		return errors.New("a rule has one of to, from and peer")
	}
	p.peers = roles
	p.rule.Networks, err = networks(v)
	return err
}

func (p *parser) name(v string) error {
	number := strings.Trim(v, "0123456789") == ""
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	if number || len(v) > MaxName || v[0] == '-' || strings.ContainsFunc(v, bad) {
		return fmt.Errorf("a name has up to %d letters, digits, dots, underscores and, not first, dashes, and is no number", MaxName)
	}
	p.rule.Name = v
	return nil
}

func (p *parser) role(v string) error {
	switch v {
	case "connect":
		p.rule.Role = Connect
	case "listen":
		p.rule.Role = Listen
	default:
		return fmt.Errorf("a role is connect or listen")
	}
	return nil
}

func (p *parser) cgroup(v string) error {
	clean := path.Clean("/" + v)
	if !isWord(v) || len(clean) > MaxCgroup || slices.Contains(strings.Split(v, "/"), "..") {
		return fmt.Errorf("the path is that below /sys/fs/cgroup, without blanks and #, such as system.slice/redis.service")
	}
	p.rule.Cgroup = clean
	return nil
}

// isWord reports whether a file can have the text as a word of a rule: without blanks and #, and of characters that an editor shows.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '#' || r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r)
	})
}

// id parses the name or the number of a user or group.
func id(kind, v string, lookUp func(string) (uint32, error)) (*uint32, error) {
	n, err := parseID(v)
	if err != nil {
		n, err = lookUp(v)
	}
	// The highest number stands for none.
	if err != nil || n == 1<<32-1 {
		file, option := "/etc/passwd", "-u"
		if kind == "group" {
			file, option = "/etc/group", "-g"
		}
		return nil, &SyntaxError{
			Text:   fmt.Sprintf("there is no such %s in %s", kind, file),
			Remedy: fmt.Sprintf("if another service knows it, give the number, from 'id %s'", option),
		}
	}
	return &n, nil
}

const portsHelp = "ports are numbers from 1 to 65535, ranges of them, and lists: 6379,8000-8100"

func ports(v string) ([]PortRange, error) {
	var list []PortRange
	for part := range strings.SplitSeq(v, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseUint(first, 10, 16)
		b, errB := strconv.ParseUint(last, 10, 16)
		if errA != nil || errB != nil || a == 0 || a > b {
			return nil, errors.New(portsHelp)
		}
		list = append(list, PortRange{uint16(a), uint16(b)})
	}
	slices.SortFunc(list, func(a, b PortRange) int { return cmp.Compare(a.First, b.First) })
	for i := range list[1:] {
		if list[i].Last >= list[i+1].First {
			return nil, fmt.Errorf("port %d is in it twice", list[i+1].First)
		}
	}
	return shorten(list)
}

// shorten joins ranges that follow each other, so that the same ports are the same list.
func shorten(list []PortRange) ([]PortRange, error) {
	joined := list[:1]
	for _, r := range list[1:] {
		if last := &joined[len(joined)-1]; last.Last+1 == r.First {
			last.Last = r.Last
		} else {
			joined = append(joined, r)
		}
	}
	if len(joined) > MaxList {
		return nil, &SyntaxError{Text: fmt.Sprintf("a list has %d entries at most", MaxList), Remedy: "use ranges, or several rules"}
	}
	return joined, nil
}

func networks(v string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for part := range strings.SplitSeq(v, ",") {
		p, err := network(part)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, p.Overlaps) {
			return nil, fmt.Errorf("%s overlaps with another one", part)
		}
		list = append(list, p)
	}
	if len(list) > MaxList {
		return nil, &SyntaxError{Text: fmt.Sprintf("a list has %d entries at most", MaxList), Remedy: "use several rules"}
	}
	slices.SortFunc(list, netip.Prefix.Compare)
	return list, nil
}

func network(v string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(v); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(v)
	if err == nil && p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.Prefix{}, fmt.Errorf("write it as a network of IPv4: %s", netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96))
	}
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("networks are addresses with the length of a prefix, and lists: 10.9.0.0/16,fd00::/8")
	}
	if p != p.Masked() {
		return netip.Prefix{}, &SyntaxError{Text: v + " has bits behind its prefix", Remedy: fmt.Sprintf("write %s", p.Masked())}
	}
	return p, nil
}

// Text returns the rule as Parse reads it, with names where names has some.
func (r Rule) Text(names Names) string {
	words := []string{r.Verdict.String()}
	add := func(word, value string) {
		if value != "" {
			words = append(words, word, value)
		}
	}
	// A name that is read as something else is left out.
	named := func(n *uint32, name func(uint32) string, lookUp func(string) (uint32, error)) string {
		if n == nil {
			return ""
		}
		if s := name(*n); isWord(s) {
			if _, err := parseID(s); err != nil {
				if again, err := lookUp(s); err == nil && again == *n {
					return s
				}
			}
		}
		return strconv.FormatUint(uint64(*n), 10)
	}
	add("name", r.Name)
	// The word before networks says the role.
	if len(r.Networks) == 0 && (r.Role == Connect || r.Role == Listen) {
		add("role", r.Role.String())
	}
	add("user", named(r.User, names.UserName, names.User))
	add("group", named(r.Group, names.GroupName, names.Group))
	// The root has no other name.
	if r.Cgroup == "/" {
		add("cgroup", "/")
	} else {
		add("cgroup", strings.TrimPrefix(r.Cgroup, "/"))
	}
	add("port", formatPorts(r.Ports))
	add("local", formatPorts(r.LocalPorts))
	add("remote", formatPorts(r.RemotePorts))
	var nets []string
	for _, p := range r.Networks {
		nets = append(nets, p.String())
	}
	add(map[Role]string{Connect: "to", Listen: "from", Any: "peer"}[r.Role], strings.Join(nets, ","))
	return strings.Join(words, " ")
}

func formatPorts(list []PortRange) string {
	var parts []string
	for _, r := range list {
		if r.First == r.Last {
			parts = append(parts, fmt.Sprint(r.First))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	return strings.Join(parts, ",")
}

// maxLine is the number of bytes of a line that is read.
const maxLine = 1 << 20

// ParseFile parses the text of a policy file: a rule in each line, in the order of evaluation. A word that begins with # begins a
// comment. name is that of the file, for errors, which are *SyntaxError.
func ParseFile(text, name string, names Names) ([]Rule, error) {
	var rules []Rule
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if i := slices.IndexFunc(words, func(w string) bool { return w[0] == '#' }); i >= 0 {
			words = words[:i]
		}
		if len(words) == 0 {
			continue
		}
		r, err := Parse(words, names)
		if err == nil {
			err = Check(append(rules, r))
		}
		if err != nil {
			e := *err.(*SyntaxError)
			e.File, e.Line = name, n
			return nil, &e
		}
		rules = append(rules, r)
	}
	if lines.Err() != nil {
		return nil, &SyntaxError{File: name, Line: n, Text: "the line is longer than a megabyte", Remedy: "write one rule in each line"}
	}
	return rules, nil
}

// Check looks for what the last of some rules has in common with the others and must not: its name or its conditions. The error is a
// *SyntaxError.
func Check(rules []Rule) error {
	if len(rules) == 0 {
		return nil
	}
	if len(rules) > MaxRules {
		return &SyntaxError{Text: fmt.Sprintf("there are more than %d rules", MaxRules)}
	}
	last := rules[len(rules)-1]
	for i, r := range rules[:len(rules)-1] {
		if last.Name != "" && r.Name == last.Name {
			return &SyntaxError{Text: fmt.Sprintf("rule %d has the name %s already", i+1, r.Name)}
		}
		if r.sameConditions(last) {
			return &SyntaxError{Text: fmt.Sprintf("rule %d has the same conditions", i+1)}
		}
	}
	return nil
}
