// SPDX-License-Identifier: Apache-2.0

package smcrnics

const long = `List the devices that SMC can use, RoCE adapters for SMC-R and ISM devices for
SMC-D, and switch PCI functions on and off.

DEVICE names one: a function ID (FID) in hexadecimal with or without 0x, the
name of an RDMA device or of a network interface, or a PCI address. By default
what is switched on and of use to SMC is listed; with --all also functions and
slots that are switched off, and other PCI functions (without FIDs, only other
network adapters). A device that the options leave out, or that does not exist,
is an error. Everybody may list; -e and -d need root.

LISTING ON IBM Z
  A row for each network interface of a PCI function, with -I for each port of
  its RDMA device. Devices that are not on PCI are in --json only.

  FID      function ID
  Power    1 on, 0 off
  PCI_ID   PCI address
  PCHID    physical channel ID; virtual one (VCHID) for ISM
  Type     name of the feature; with -r vendor:device
  PFT      type of PCI function: ROC, ROC2, ISM, NETH, NETD; with -r the number
  VF, VFN  whether this is a virtual function (y, n); with -r its number
  PPrt     port of the adapter, counted from 0
  IPrt     port of the RDMA device, counted from 1
  PNET_ID  ID of the physical network; * if the PNET table has set it
           (see smc_pnet) and not the firmware
  Net-Dev  network interface
  IB-Dev   RDMA device

LISTING ELSEWHERE
  A row for each port of an RDMA device, and one for each other device. -I
  changes nothing: interfaces and RDMA devices are in the same row.

  IB-Dev   RDMA device; n/a without one, as when its driver is not loaded
  Port     port of the RDMA device, counted from 1
  State    ACTIVE, DOWN, INIT, ARMED; off for a slot that is switched off
  SMC      what it is good for: R for SMC-R, Rv1 or Rv2 if all its GIDs are of
           RoCE v1 or v2 (soft-RoCE has v2 only), D for SMC-D, - for nothing
           (iWARP, InfiniBand, no RDMA device)
  Type     the adapter, or its driver; with -r vendor:device
  PCI_ID   PCI address; of the slot, without function, if that is switched off
  PNET_ID  as above
  Net-Dev  network interface of the port

SWITCHING
  On IBM Z, -e and -d switch a PCI function; off also deconfigures it in the
  partition. Elsewhere only slots for hot plugging have a switch, which works on
  all functions in the slot; slots without a RoCE or ISM device are left alone.
  A device that is as wanted already stays so; a line says that, and the exit
  status is 0.

JSON
  {"schema": 1, "zpci": …, "devices": [{"kind", "name", "type", "driver",
  "firmware", "node_type", "node_guid", "software", "pnet_id", "pci", "zpci",
  "slot", "ism", "ports", "netdevs"}]}

  What is not known is left out, a PNET ID that is not set is null. IDs that are
  hexadecimal by custom are strings without 0x. kind is roce, rdma (an RDMA
  device that SMC-R cannot use), ism, other or off; pnet_id is {"id",
  "source"}, source being hardware or table.

  With -e and -d it is {"schema": 1, "fid", "slot", "power", "changed"}.

EXIT STATUS
  0  done, also if nothing had to be done or there is nothing to list
  1  failed
  2  the command line makes no sense`

const example = `  # what can SMC use here?
  smc_rnics

  # everything, also what is switched off, with RDMA devices and ports
  smc_rnics -a -I

  # one device, by FID, by name, by interface
  smc_rnics 8ca
  smc_rnics mlx5_0
  smc_rnics eth0

  # switch the function with FID 8ca on, and know whether that changed anything
  smc_rnics -e 8ca --json

  # interfaces of ports that are up, and their PNET IDs
  smc_rnics --json | jq -r '.devices[].ports[] | select(.state == "ACTIVE") | [.netdev, .pnet_id.id] | @tsv'`
