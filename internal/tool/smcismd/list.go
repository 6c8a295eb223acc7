// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcismd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/spf13/cobra"
)

const (
	// statusName is the socket at which the server describes itself: it writes a document of listJSON and closes the connection.
	statusName = "status"
	// statusTime is how long that may take.
	statusTime = 5 * time.Second
	// statusMax is how many connections to the socket are served at a time.
	statusMax = 16
	// documentMax is the size of the largest document that list reads in bytes: each member takes less than 512 bytes.
	documentMax = 16 << 20
)

// listJSON is the output of list with --json.
type listJSON struct {
	Schema int `json:"schema"`
	// in the order of the command line of `smc_ismd`
	Fabrics []fabricJSON `json:"fabrics"`
}

// fabricJSON is a fabric.
type fabricJSON struct {
	Name   string `json:"fabric" schema1:"name"`
	Socket string `json:"socket_path" schema1:"socket"`
	Size   uint64 `json:"size_bytes" schema1:"size"`
	// that each member can use for DMBs
	AreaBytes uint64 `json:"area_bytes"`
	HugePages bool   `json:"hugepages"`
	// of the members' devices
	CHID string `json:"pchid" schema1:"chid"`
	// of the members' devices
	GID   string `json:"gid"`
	Limit int    `json:"max_members" schema1:"members_max"`
	// in the order of their numbers
	Members []memberJSON `json:"members"`
}

// memberJSON is a member of a fabric.
type memberJSON struct {
	Number int    `json:"member" schema1:"number"`
	State  string `json:"membership" schema1:"state"`
	// of QEMU; left out if it is in another PID namespace
	PID int `json:"pid,omitempty"`
	// of the membership
	Since time.Time `json:"since"`
	// of the guest. This and the following fields are what guests have written in the memory
	Host string `json:"hostname,omitempty" schema1:"host"`
	// of the member, if `membership` is `joined`
	ExtGID    string `json:"ext_gid,omitempty"`
	Used      uint64 `json:"dmb_bytes"`
	Doorbells uint64 `json:"doorbells"`
	Spared    uint64 `json:"spared"`
}

func newMemberJSON(m fabric.MemberStatus) memberJSON {
	j := memberJSON{
		Number: m.Number, State: "joined", PID: m.PID, Since: m.Since.Truncate(time.Second), Host: m.Host,
		Used: m.Used, Doorbells: m.Rung, Spared: m.Spared,
	}
	switch {
	case m.Removed:
		j.State = "removed"
	case m.ExtGID == 0:
		j.State = "unused"
	default:
		j.ExtGID = fmt.Sprintf("%016x", m.ExtGID)
	}
	return j
}

// document describes all fabrics.
func (s *server) document() listJSON {
	doc := listJSON{Schema: jsondoc.Schema, Fabrics: []fabricJSON{}}
	for _, f := range s.fabrics {
		st := f.Status()
		j := fabricJSON{
			Name: st.Name, Socket: f.path, Size: st.Size, AreaBytes: st.AreaBytes, HugePages: st.HugePages,
			CHID: fmt.Sprintf("%04x", st.CHID), GID: fmt.Sprintf("%016x", st.GID), Limit: st.Limit, Members: []memberJSON{},
		}
		for _, m := range st.Members {
			j.Members = append(j.Members, newMemberJSON(m))
		}
		doc.Fabrics = append(doc.Fabrics, j)
	}
	return doc
}

// serveStatus answers at the status socket until ctx ends.
func (s *server) serveStatus(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.status.Close() })
	defer stop()
	slots := make(chan struct{}, statusMax)
	for {
		conn, err := s.status.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			s.log(fmt.Sprintf("cannot accept connections for list: %v", err))
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(statusTime):
			}
			continue
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			defer conn.Close()
			if conn.SetDeadline(time.Now().Add(statusTime)) == nil {
				_ = cli.WriteJSON(conn, s.document())
			}
		}()
	}
}

func newList(c *command) *cobra.Command {
	asJSON := false
	var watch cli.Watch
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"show"},
		Short:             "List fabrics and their members",
		Long:              listLong,
		Example:           listExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return watch.List(cmd.Context(), c.env, asJSON, func() error { return c.list(cmd.Context(), asJSON, &watch) })
		},
	}
	c.addDir(cmd)
	cli.AddJSONFlag(cmd.Flags(), c.env, &asJSON, "print one JSON document")
	watch.AddFlag(cmd.Flags())
	return cmd
}

// list prints what the server describes.
func (c *command) list(ctx context.Context, asJSON bool, watch *cli.Watch) error {
	doc, err := c.readStatus(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return watch.WriteJSON(c.env, doc)
	}
	for i, f := range doc.Fabrics {
		if i > 0 {
			fmt.Fprintln(c.env.Out)
		}
		if err := c.printFabric(f); err != nil {
			return err
		}
	}
	return nil
}

// readStatus reads the document of the server.
func (c *command) readStatus(ctx context.Context) (doc listJSON, err error) {
	path := filepath.Join(c.dir, statusName)
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return doc, remedy.Errorf("start it, or give the directory of its sockets with --dir", "no smc_ismd serves %s", c.dir)
	case errors.Is(err, syscall.EACCES):
		return doc, remedy.Errorf("run as root, or start smc_ismd with --status-mode and --status-group", "you have no access to %s", path)
	case err != nil:
		return doc, fmt.Errorf("cannot ask smc_ismd: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * statusTime)); err != nil {
		return doc, err
	}
	if err := json.NewDecoder(io.LimitReader(conn, documentMax)).Decode(&doc); err != nil {
		return doc, remedy.Errorf("try again", "smc_ismd at %s does not describe itself: %w", path, err)
	}
	if doc.Schema != jsondoc.Schema {
		return doc, remedy.Errorf("restart it if it is older, or use the command of its package", "smc_ismd at %s has another version", path)
	}
	return doc, nil
}

// printFabric prints a line about a fabric and the table of its members.
func (c *command) printFabric(f fabricJSON) error {
	huge := ""
	if f.HugePages {
		huge = " of huge pages"
	}
	_, err := fmt.Fprintf(c.env.Out, "%s: %s%s, CHID %s, GID %s, %d of %d members\n",
		cli.Printable(f.Name), fabric.FormatSize(f.Size), huge, cli.Printable(f.CHID), cli.Printable(f.GID), len(f.Members), f.Limit)
	if err != nil || len(f.Members) == 0 {
		return err
	}
	var rows [][]string
	for _, m := range f.Members {
		pid := "n/a"
		if m.PID != 0 {
			pid = strconv.Itoa(m.PID)
		}
		rows = append(rows, []string{
			strconv.Itoa(m.Number), m.State, orNone(m.Host), pid, orNone(m.ExtGID), m.Since.Local().Format(time.DateTime),
			strconv.FormatUint(m.Used, 10), strconv.FormatUint(m.Doorbells, 10), strconv.FormatUint(m.Spared, 10),
		})
	}
	return cli.WriteTable(c.env.Out, []string{"Member", "State", "Host", "PID", "GID", "Since", "Used", "Doorbells", "Spared"}, rows)
}

// orNone is for cells of which nothing is known.
func orNone(s string) string {
	if s == "" {
		return "n/a"
	}
	return s
}
