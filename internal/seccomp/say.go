// SPDX-License-Identifier: Apache-2.0

package seccomp

// Say prints a line to the standard error of another process. A process that has none gets nothing.
func Say(pid int, line string) {}
