// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// Difference is the difference between two lists of rules.
type Difference struct {
	// From and To are the lists. Rules of To that are in From, too, have the numbers that they have there, with which SetRules keeps
	// them.
	From, To []Rule
	// Removed and Added are the rules of one list only. A rule that is in both, behind others than before, is in each of them, unless
	// it is the others that have moved: as many rules stay as can.
	Removed, Added []Rule
	// Lines lead from one list to the other, in the order of both: rules that stay, those that are removed and those that are added.
	Lines []DiffLine
}

// DiffLine is a rule of a Difference. Mark is '-' for one that is removed, '+' for one that is added, ' ' for one that stays.
type DiffLine struct {
	Mark byte
	Rule Rule
}

// Changed reports whether the lists differ.
func (d Difference) Changed() bool { return len(d.Removed)+len(d.Added) > 0 }

// Moved reports whether a rule is in both lists, at another place among the others.
func (d Difference) Moved(r Rule) bool {
	return slices.ContainsFunc(d.Removed, r.Equal) && slices.ContainsFunc(d.Added, r.Equal)
}

// Context returns the lines that change, with n lines that stay before and after each of them. A line without a mark stands for those
// that are left out.
func (d Difference) Context(n int) []DiffLine {
	near := func(i int) bool {
		return slices.ContainsFunc(d.Lines[max(i-n, 0):min(i+n+1, len(d.Lines))], func(l DiffLine) bool { return l.Mark != ' ' })
	}
	var lines []DiffLine
	for i, l := range d.Lines {
		if near(i) {
			lines = append(lines, l)
		} else if len(lines) == 0 || lines[len(lines)-1].Mark != 0 {
			lines = append(lines, DiffLine{})
		}
	}
	return lines
}

func (d *Difference) add(mark byte, r Rule) {
	d.Lines = append(d.Lines, DiffLine{mark, r})
	switch mark {
	case '-':
		d.Removed = append(d.Removed, r)
	case '+':
		d.Added = append(d.Added, r)
	}
}

// Compare compares two lists of rules.
func Compare(from, to []Rule) Difference {
	d := Difference{From: from, To: slices.Clone(to)}
	for i := range d.To {
		if j := slices.IndexFunc(from, d.To[i].Equal); j >= 0 {
			d.To[i] = from[j]
		}
	}
	// common[i][j] is the number of rules that from[i:] and to[j:] have in common in the same order.
	common := make([][]int, len(from)+1)
	for i := range common {
		common[i] = make([]int, len(to)+1)
	}
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			if from[i].Equal(to[j]) {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		switch {
		case i < len(from) && j < len(to) && from[i].Equal(to[j]):
			d.add(' ', from[i])
			i, j = i+1, j+1
		case j == len(to) || i < len(from) && common[i+1][j] >= common[i][j+1]:
			d.add('-', from[i])
			i++
		default:
			d.add('+', to[j])
			j++
		}
	}
	return d
}
