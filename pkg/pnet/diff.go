// SPDX-License-Identifier: Apache-2.0

package pnet

// Step is one request to the kernel.
type Step struct {
	// Delete is set for a step that deletes all entries of Entry.ID. A step without it adds Entry.
	Delete bool
	Entry  Entry
}

// Plan is the list of steps from one table to another. Its zero value, and one without steps, changes nothing.
type Plan struct {
	// From is the table for which the plan was made.
	From Table
	// To is the table after the last step, in the kernel's order.
	To Table
	// Added and Removed are the entries that only To and only From have. Entries that are deleted and added again, because
	// the kernel can only delete a PNET ID as a whole, are in neither.
	Added, Removed Table
	// Steps are the requests, in order.
	Steps []Step
}

// Changed reports whether the plan changes anything.
func (p Plan) Changed() bool { return len(p.Steps) > 0 }

// Diff plans the steps from current to a table with exactly the entries of wanted, in any order: the order has no meaning to
// the kernel. The steps touch only PNET IDs that lose or gain an entry. An entry is deleted and added again only if another
// entry of its PNET ID must be deleted. An entry that is twice in wanted counts once; a device in two entries makes a plan that
// fails and changes nothing.
//
// The first steps add entries for devices that have no entry yet, if they require no deletion. The kernel may refuse these
// entries, and then Apply has few steps to undo.
func Diff(current, wanted Table) Plan {
	wanted = unique(wanted)
	p := Plan{From: current, Added: wanted.without(current), Removed: current.without(wanted)}
	deleted := make(map[ID]bool)
	for _, e := range p.Removed {
		deleted[e.ID] = true
	}
	free := func(e Entry) bool {
		_, taken := current.Conflict(e)
		return !taken && !deleted[e.ID]
	}
	for _, e := range p.Added.filter(free) {
		p.Steps = append(p.Steps, Step{Entry: e})
	}
	for _, id := range p.Removed.IDs() {
		p.Steps = append(p.Steps, Step{Delete: true, Entry: Entry{ID: id}})
		for _, e := range current.Of(id).without(p.Removed) {
			p.Steps = append(p.Steps, Step{Entry: e})
		}
	}
	for _, e := range p.Added.filter(func(e Entry) bool { return !free(e) }) {
		p.Steps = append(p.Steps, Step{Entry: e})
	}
	p.To = current
	for _, s := range p.Steps {
		p.To = s.on(p.To)
	}
	return p
}

// on returns the table that the step makes of t.
func (s Step) on(t Table) Table {
	if s.Delete {
		return t.filter(func(e Entry) bool { return e.ID != s.Entry.ID })
	}
	return append(t[:len(t):len(t)], s.Entry)
}

// unique returns t with each entry once.
func unique(t Table) Table {
	seen := make(map[Entry]bool, len(t))
	return t.filter(func(e Entry) bool {
		first := !seen[e]
		seen[e] = true
		return first
	})
}
