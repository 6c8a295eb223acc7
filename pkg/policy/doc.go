// SPDX-License-Identifier: Apache-2.0

// Package policy reads and changes the policy of a network namespace: the rules of smckit's module by which ordinary TCP sockets
// become SMC, and SMC sockets stay TCP.
//
// A [Rule] has a verdict and conditions. The module evaluates the rules, in their order, when a socket is to connect or to
// listen; the first rule whose conditions hold decides. If none does, a socket stays what it was made for. With the verdict
// [Auto], what becomes of it depends on what its [Service] has learned. [Parse] has the
// notation of the command smc_policy, and [Policy.Decide] does in user space what the module does.
//
// A change names the [Policy] that it is made to, so that two programs that change the policy do not undo each other's work: see
// [ErrChanged].
package policy
