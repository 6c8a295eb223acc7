// SPDX-License-Identifier: Apache-2.0

package statdoc

import "github.com/smckit/smckit/pkg/smcstats"

// baseline is the name of the baseline that all commands count from. A reset by one of them is a reset for the others.
const baseline = "stats"

// OpenBaseline returns the store of the calling user's baseline in the present network namespace.
func OpenBaseline(getenv func(string) string) (*smcstats.Store, error) {
	return smcstats.NewStore(baseline, getenv)
}
