// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// proxy is the argument that makes this program the ProxyCommand of ssh.
const proxy = "proxy"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == proxy {
		if err := relay(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// relay connects standard input and output to a socket.
func relay(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// control is the control machine: this one, which reaches the guests by ssh and, instead of a network, by a socket for each,
// so that neither machine nor guests need a bridge between them.
type control struct {
	*tree
	t   *testing.T
	lt  *lab.Test
	dir string // short, for paths of sockets have a limit
}

// Places in a guest.
const (
	sshDir    = "/run/ssh"
	sshConfig = sshDir + "/sshd_config"
)

// newControl makes guests reachable by ssh.
func newControl(t *testing.T, lt *lab.Test, programs string) *control {
	t.Helper()
	dir, err := os.MkdirTemp("", "ssh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := &control{tree: install(t), t: t, lt: lt, dir: dir}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	for _, h := range lt.Hosts {
		c.prepare(h, programs)
		c.serve(h)
	}
	c.configure()
	return c
}

// prepare gives a guest the files of its sshd, until the next reboot.
func (c *control) prepare(h *lab.Host, programs string) {
	c.t.Helper()
	c.lt.Must(h.Name, "mkdir -p -m 755 /run/sshd "+sshDir)
	for name, perm := range map[string]os.FileMode{"host": 0o600, "user.pub": 0o644} {
		key, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := h.WriteFile(c.t.Context(), sshDir+"/"+name, key, perm); err != nil {
			c.t.Fatal(err)
		}
	}
	config := strings.Join([]string{
		"HostKey " + sshDir + "/host", "AuthorizedKeysFile " + sshDir + "/user.pub", "StrictModes no", "UsePAM no", "UseDNS no",
		"PermitRootLogin prohibit-password", "PasswordAuthentication no", "Subsystem sftp internal-sftp", "LoginGraceTime 0",
		"SetEnv PATH=" + programs + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "",
	}, "\n")
	if err := h.WriteFile(c.t.Context(), sshConfig, []byte(config), 0o644); err != nil {
		c.t.Fatal(err)
	}
	// The guest gets a file of its own, because this machine's may be out of its reach, or have root locked.
	c.lt.Must(h.Name, "rm -f /etc/shadow; umask 077; echo 'root:*:19000:0:99999:7:::' >/etc/shadow")
}

// serve has a guest answer ssh: each connection to its socket is one of its sshd's.
func (c *control) serve(h *lab.Host) {
	c.t.Helper()
	l, err := net.Listen("unix", c.socket(h.Name))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					c.t.Error(err)
				}
				return
			}
			go c.session(h, conn)
		}
	}()
}

// session runs an sshd in the guest for one connection.
func (c *control) session(h *lab.Host, conn net.Conn) {
	defer conn.Close()
	p, err := h.Start(lab.Cmd{Argv: []string{"/usr/sbin/sshd", "-i", "-f", sshConfig}, Stdin: conn, Stdout: conn, Stderr: io.Discard})
	if err != nil {
		return // ssh detects the end of the connection
	}
	_, _ = p.Wait(c.t.Context())
}

func (c *control) socket(host string) string { return filepath.Join(c.dir, host) + ".sock" }

// configure writes the configuration of ssh.
func (c *control) configure() {
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(c.dir, "host.pub"))
	if err != nil {
		c.t.Fatal(err)
	}
	write(c.t, filepath.Join(c.dir, "known_hosts"), "guest "+string(key))
	write(c.t, filepath.Join(c.dir, "ssh_config"), strings.Join([]string{
		"User root", "IdentityFile " + filepath.Join(c.dir, "user"), "IdentitiesOnly yes", "HostKeyAlias guest",
		"UserKnownHostsFile " + filepath.Join(c.dir, "known_hosts"), "GlobalKnownHostsFile /dev/null",
		"StrictHostKeyChecking yes", fmt.Sprintf("ProxyCommand %s %s %s/%%n.sock", self, proxy, c.dir), "",
	}, "\n"))
}

// play runs a playbook with an inventory, and returns the result of each host and all output of Ansible.
func (c *control) play(inventory, playbook string, args ...string) (map[string]recap, string) {
	c.t.Helper()
	path, err := filepath.Abs(playbook)
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.dir, "inventory.yml")
	write(c.t, file, inventory)
	env := []string{
		"ANSIBLE_SSH_ARGS=-F " + filepath.Join(c.dir, "ssh_config") + " -o ControlMaster=auto -o ControlPersist=60s",
		"ANSIBLE_SSH_CONTROL_PATH_DIR=" + filepath.Join(c.dir, "cp"), "ANSIBLE_PIPELINING=1",
		// The handshake of ssh is slow on emulated processors.
		fmt.Sprintf("ANSIBLE_TIMEOUT=%d", int(lab.Scale(connectTime).Seconds())),
	}
	_, out := c.run(c.t, c.home, env, append([]string{"ansible-playbook", "-i", file, path}, args...)...)
	c.t.Log(out)
	return recaps(out), out
}
