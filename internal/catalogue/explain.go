// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"
	"strings"

	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Remedies that depend on the process. Both are also the text for a user without privileges. Other packages have texts of their own that
// end in owner.
const (
	// NeedAdmin is for requests about the whole host.
	NeedAdmin = "run as root, that is with CAP_NET_ADMIN in the initial user namespace"
	// NeedNetNSAdmin is for settings of a network namespace.
	NeedNetNSAdmin = "run as root, or with CAP_NET_ADMIN" + owner

	owner = " in the user namespace that owns the network namespace"
)

// Remedies that depend on the modules of the host.
const (
	// LoadModule is for ErrNoModule.
	LoadModule = "load it with 'modprobe smc'"
	// NeedSmckit is for ErrNotSupported, if all versions of smckit's module know the request.
	NeedSmckit = "install smckit's module (package smckit-dkms)"
)

// switchModule is how to use an installed module of smckit in place of the kernel's own.
const switchModule = "unload the kernel's own with 'modprobe -r smc_diag smc', and run 'modprobe smc'"

// Explain returns err with the reason and the remedy that fit this host, if it is one of the errors that every command can meet. Other
// errors, and nil, stay as they are. It reads files, so call it only when a command has failed.
func Explain(err error) error {
	if e, ok := errors.AsType[*smcerr.Error](err); !ok || e.Kind == nil {
		return err
	}
	return Read("").Explain(err)
}

// Explain is the function Explain for an error of the host h.
func (h *Host) Explain(err error) error {
	if e, ok := errors.AsType[*smcerr.Error](err); ok && e.Kind != nil {
		return explain(err, e, h)
	}
	return err
}

func explain(err error, e *smcerr.Error, h *Host) error {
	var reason, remedy string
	switch {
	case errors.Is(e.Kind, smcerr.ErrNoModule):
		reason, remedy = h.noModule(e)
	case errors.Is(e.Kind, smcerr.ErrNotSupported):
		remedy = h.notSupported(e)
	case errors.Is(e.Kind, smcerr.ErrPermission):
		remedy = h.permission(e)
	}
	if remedy == "" {
		return err
	}
	better := *e
	better.Remedy = remedy
	if reason != "" {
		better.Kind = smcerr.With(errors.New(e.Kind.Error()+": "+reason), e.Kind)
	}
	return &explained{strings.Replace(err.Error(), e.Error(), better.Error(), 1), &better, err}
}

// explained is an error with another text, and with another *smcerr.Error.
type explained struct {
	text   string
	better *smcerr.Error
	err    error
}

func (e *explained) Error() string { return e.text }

func (e *explained) Unwrap() []error { return []error{e.better, e.err} }

// noModule returns why nothing serves a request, and the remedy; "" for what the error says already.
func (h *Host) noModule(e *smcerr.Error) (reason, remedy string) {
	d := h.Diagnose()
	switch {
	case d != nil && d.ID == "module-not-loaded" && strings.Contains(e.Remedy, "modprobe smc_diag"):
		// This one needs the other.
		return d.Text, strings.Replace(d.Remedy, "modprobe smc", "modprobe smc_diag", 1)
	case d != nil:
		return d.Text, d.Remedy
	case strings.Contains(e.Op, "netlink family "+policy.Family) && !h.Module.Ours:
		return "the loaded module is the kernel's own", h.replace()
	case strings.Contains(e.Op, "netlink family") && !h.Module.Ours:
		return "the loaded module is too old", "use Linux 5.11 or newer, or smckit's module: " + h.replace()
	}
	return "", ""
}

// notSupported returns the remedy if the loaded module does not know a request, "" if something else does not.
func (h *Host) notSupported(e *smcerr.Error) string {
	own := e.Remedy == NeedSmckit
	switch {
	case !own && !strings.HasSuffix(e.Remedy, " or newer"):
		return ""
	case h.Module.Ours:
		return "update smckit's module, which is older than this command"
	case own:
		return h.replace()
	}
	return e.Remedy + ", or smckit's module: " + h.replace()
}

// replace returns how to use smckit's module in place of the kernel's own, which is loaded.
func (h *Host) replace() string {
	if strings.Contains(h.Module.File, "/updates/") || strings.Contains(h.Module.File, "/extra/") {
		// Distributions and DKMS put modules there that do not belong to the kernel.
		return switchModule
	}
	return h.build() + ", " + switchModule
}

// permission returns the remedy for a process that may not do something, "" for what the error says already.
func (h *Host) permission(e *smcerr.Error) string {
	p, inNetNS := &h.Process, strings.HasSuffix(e.Remedy, owner)
	switch {
	case e.Remedy != NeedAdmin && !inNetNS, !p.Root && !p.NetAdmin:
		return ""
	case !p.NetAdmin:
		return "root lacks CAP_NET_ADMIN here: start the container with --cap-add NET_ADMIN, or the service with CapabilityBoundingSet=CAP_NET_ADMIN"
	case p.UserNS && !inNetNS:
		return "this is root of a user namespace only, as in a rootless container: run it as root of the host"
	case p.UserNS:
		return "this is root of another user namespace: run it as root of the one that owns the network namespace"
	}
	return "this process has CAP_NET_ADMIN, so a security module or a seccomp profile denies it: the audit log or 'dmesg' shows which"
}

// Absent returns for a message why this host has no AF_SMC sockets, and the remedy.
func Absent() string { return absent(Read("")) }

func absent(h *Host) string {
	if d := h.Diagnose(); d != nil {
		return d.Text + ": " + d.Remedy
	}
	// The module is there, and refuses sockets to this program.
	return "run 'smc_chk' to see why"
}
