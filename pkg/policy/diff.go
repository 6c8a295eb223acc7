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
}

// Changed reports whether the lists differ.
func (d Difference) Changed() bool { return len(d.Removed)+len(d.Added) > 0 }

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
			i, j = i+1, j+1
		case j == len(to) || i < len(from) && common[i+1][j] >= common[i][j+1]:
			d.Removed, i = append(d.Removed, from[i]), i+1
		default:
			d.Added, j = append(d.Added, to[j]), j+1
		}
	}
	return d
}
