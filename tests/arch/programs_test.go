// SPDX-License-Identifier: Apache-2.0

//go:build linux

package arch

import (
	"fmt"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// rules has rules of smc_policy make SMC sockets of ordinary ones on host a. For that, the module hooks a function of the kernel, whose
// arguments each architecture passes in its own way.
func rules(t *testing.T, lt *lab.Test) {
	lt.Must("a", fmt.Sprintf("printf %s >/run/smckit-smcd", lab.LengthShort))
	lt.GoTest(t, "a", "github.com/smckit/smckit/tests/onehost/inside", "^TestRules(Convert|Hook|Off)$")
}
