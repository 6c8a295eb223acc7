// SPDX-License-Identifier: Apache-2.0

package smcpolicy

// The documents of --json, for programs that read them.
type (
	// Rules is the document of smc_policy show.
	Rules = policyJSON
	// Rule is a rule of Rules.
	Rule = ruleJSON
	// Memory is the document of smc_policy memory.
	Memory = memoryJSON
)
