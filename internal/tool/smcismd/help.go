// SPDX-License-Identifier: Apache-2.0

package smcismd

const rootLong = `Share memory between guests of this host, which use it for SMC-D. A fabric is one
memory and the guests that may use it, its members. A guest becomes a member by
QEMU's device ivshmem-doorbell, whose server is smc_ismd:

  -chardev socket,id=ism0,path=/run/smc/ism/blue.sock
  -device ivshmem-doorbell,chardev=ism0,vectors=2

All members of a fabric can read and change all of its memory. Guests that must
not trust each other belong to different fabrics.

smc_ismd serves each fabric at the socket NAME.sock in the directory, until
SIGTERM ends it. It prints a line on standard error when a member joins or
leaves. Another smc_ismd for the same directory is refused.

FABRICS
  A fabric is NAME:SIZE, and options that are separated by commas. NAME is 1 to
  31 letters, digits, dots, underscores and hyphens. SIZE is a power of two, with
  K, M, G or T. The memory is divided equally among the members; each connection
  takes its receive buffer from the area of the guest that receives. Each member
  must get a bit more than 1M: 8M is enough for 4 members, and 16M for 8. It cannot
  use more than 1G.

  members=N    how many members there can be, 2 to 64 (default: 8)
  mode=MODE    mode of the socket, octal (default: 0660)
  owner=USER   owner of the socket (default: the user who runs smc_ismd)
  group=GROUP  group of the socket (default: that of smc_ismd)
  chid=CHID    CHID of the guests' devices, 0xff00 to 0xfffe (default: 0xff10)
  hugepages    allocate the memory from the host's huge pages, all of it at once

  A file of --config has one fabric on each line. A '#' at the start of a word
  begins a comment.

RESTARTS
  If systemd restarts smc_ismd as smc-ismd.service, guests do not notice: systemd
  keeps the memory and the connections meanwhile (FileDescriptorStoreMax=). A
  fabric whose size, members, CHID or pages you have changed stays as it was
  until it has no members and smc_ismd restarts once more.

  If smc_ismd ends in another way, or the service is stopped, the members of a
  fabric go on among themselves. They do not notice when one of them crashes, and
  no guest can join them: the next smc_ismd makes a new fabric. QEMU does not
  connect to a server again, so restart the guests, or remove their device and
  add it again.

Exit status:
  0  SIGTERM or SIGINT has ended the server, 'smc_ismd list' has printed
     everything, or 'smc_ismd check' has found no mistake
  1  the command failed, for example because the host lacks memory
  2  the command line is wrong`

const rootExample = `  # Two fabrics, for guests that libvirt runs
  smc_ismd --fabric blue:256M,group=kvm --fabric red:64M,members=2,group=kvm

  # The fabrics of a file, as the service does it
  smc_ismd --config /etc/smc/ism.conf`

const checkLong = `Read a file of fabrics, /etc/smc/ism.conf unless you name another one, and report
the first mistake, with file and line. The file '-' is standard input. Users and
groups must exist on this host. This serves nothing, and does not look whether the
host has the memory.`

const checkExample = `  # Before you restart the service
  smc_ismd check && systemctl restart smc-ismd`

const listLong = `List fabrics and their members. Your user needs access to the socket DIR/status,
which has the mode 0600 unless smc_ismd has --status-mode.

  Member     number of the member
  State      joined; unused if its guest has not made an area in the memory;
             removed if QEMU did not read what smc_ismd sent: the guest does not
             use the fabric any more
  Host       host name of the guest
  PID        process of QEMU; n/a if it is in another PID namespace
  GID        second half of the GID of the guest's device
  Since      when it joined
  Used       bytes of its area that are DMBs
  Doorbells  doorbells that it has rung: each is an interrupt in another guest
  Spared     signals to others that needed no doorbell, because they were looking

The guests write Host, GID, Used, Doorbells and Spared in the memory, and a member
is unused while its GID is 0. A guest can write there anything, also for others.

JSON
  {"schema": 2, "fabrics": [{"fabric", "socket_path", "size_bytes",
  "area_bytes", "hugepages", "pchid", "gid", "max_members", "members":
  [{"member", "membership", "pid", "since", "hostname", "ext_gid", "dmb_bytes",
  "doorbells", "spared"}]}]}

  area_bytes is how much each member can use for DMBs. gid is the first half of
  the members' GIDs, and ext_gid the second. Unknown values are left out.`

const listExample = `  smc_ismd list
  smc_ismd list --json`
