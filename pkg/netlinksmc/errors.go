// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"syscall"

	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Causes of errors, for errors.Is. Each is wrapped in an *smcerr.Error. Those of package smcerr are the same in all packages.
var (
	// ErrNoModule means that nothing serves the request: the SMC module, or for sockets the smc_diag module, is not
	// loaded or does not exist for this kernel. Such an error is also os.ErrNotExist.
	ErrNoModule = smcerr.ErrNoModule

	// ErrNotSupported means that the SMC module, or this operating system, does not know the request.
	ErrNotSupported = smcerr.ErrNotSupported

	// ErrPermission means that the caller may not do this. Such an error is also os.ErrPermission.
	ErrPermission = smcerr.ErrPermission

	// ErrDumpInterrupted means that the list changed while it was read, so that entries may be missing or listed twice. It
	// comes together with the result.
	ErrDumpInterrupted = smcerr.ErrDumpInterrupted

	// ErrMalformed means that the kernel's answer could not be decoded.
	ErrMalformed = smcerr.ErrMalformed

	// ErrInvalidEID means that a user EID breaks the rules of CheckEID, or that the kernel refused it.
	ErrInvalidEID = errors.New("invalid user EID")

	// ErrUEIDExists means that the user EID to add is defined already. Such an error is also os.ErrExist.
	ErrUEIDExists = errors.New("user EID already defined")

	// ErrUEIDNotFound means that the user EID to remove is not defined. It is not ErrNoModule.
	ErrUEIDNotFound = errors.New("user EID not defined")

	// ErrUEIDTableFull means that the host has four user EIDs, the maximum of the kernel.
	ErrUEIDTableFull = errors.New("maximum number of user EIDs reached")

	// ErrSEIDActivated is no failure: RemoveUEID has removed the last user EID, and the kernel has enabled the system EID,
	// because a host needs one EID. Only s390 has a system EID.
	ErrSEIDActivated = errors.New("the last user EID was removed and the system EID was activated")

	// ErrNoSEID means that this host has no system EID to enable or disable.
	ErrNoSEID = errors.New("system EID not available")

	// ErrLinkGroupNotFound means that there is no such link group, or that it does not belong to the network namespace. It is
	// not ErrNoModule.
	ErrLinkGroupNotFound = errors.New("link group not found")

	// ErrLinkNotFound means that there is no such link or link group, or that the group does not belong to the network
	// namespace. It is not ErrNoModule.
	ErrLinkNotFound = errors.New("link not found")

	// ErrOnlyLink means that the link cannot be deleted, because its group has no other link that can carry the connections.
	ErrOnlyLink = errors.New("the only usable link of its group")

	// ErrNoUEID means that the system EID cannot be disabled while no user EID is defined.
	ErrNoUEID = errors.New("no user EID defined")
)

// errnoKinds has the meanings of an errno that are special to one command. Other errnos mean the same everywhere.
var errnoKinds = map[uint8]map[syscall.Errno]error{
	cmdAddUEID.number: {
		syscall.EINVAL: ErrInvalidEID,
		syscall.EEXIST: ErrUEIDExists,
		syscall.ERANGE: ErrUEIDTableFull,
	},
	cmdRemoveUEID.number: {
		syscall.EINVAL: ErrInvalidEID,
		syscall.ENOENT: ErrUEIDNotFound,
		syscall.EAGAIN: ErrSEIDActivated,
	},
	cmdDisableSEID.number: {
		syscall.ENOENT: ErrNoUEID,
	},
}

// remedies has the remedies of errors that only this package returns.
var remedies = map[error]string{
	ErrInvalidEID:    "the kernel refused it",
	ErrUEIDTableFull: "remove one first",
	ErrUEIDNotFound:  "see the list of user EIDs",
	ErrNoUEID:        "add one first",
}

// requestError turns the failure of a request into an *smcerr.Error, and nil into nil.
func requestError(cmd command, subject string, err error) error {
	if err == nil {
		return nil
	}
	object := ""
	if subject != "" {
		object = strconv.Quote(subject)
	}
	kinds := map[syscall.Errno]error{syscall.ENOENT: ErrNoModule}
	maps.Copy(kinds, errnoKinds[cmd.number])
	e := nlconn.Error(cmd.op, object, err, kinds)
	e.Remedy = cmp.Or(remedies[e.Kind], e.Remedy)
	if e.Kind == ErrNotSupported {
		e.Remedy = fmt.Sprintf("%s needs Linux %s or newer", cmd.name, cmd.since)
	}
	return e
}

// plainError returns the failure of a request for which ENOENT means that the module is missing.
func plainError(op, object string, err error) *smcerr.Error {
	return nlconn.Error(op, object, err, map[syscall.Errno]error{syscall.ENOENT: ErrNoModule})
}

// diagError turns the failure of a listing of sockets into an *smcerr.Error.
func diagError(err error) error {
	e := plainError(opSockets, "", err)
	switch e.Kind {
	case ErrNoModule:
		e.Remedy = "load it with 'modprobe smc_diag', or use a kernel that has it"
	case ErrNotSupported:
		e.Remedy = "this kernel has no sock_diag"
	}
	return e
}

// openError turns the failure to open a netlink socket into an *smcerr.Error.
func openError(op string, err error) error {
	e := plainError(op, "", err)
	if e.Kind == ErrNotSupported {
		e.Remedy = "this kernel has no such netlink protocol"
	}
	return e
}
