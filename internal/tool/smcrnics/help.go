// SPDX-License-Identifier: Apache-2.0

package smcrnics

const long = `List the devices that SMC can use, RoCE adapters for SMC-R and ISM devices for
SMC-D, and switch PCI functions on and off.

DEVICE is a function ID (FID) in hexadecimal with or without 0x, the name of an
RDMA device or of a network interface, or a PCI address. By default smc_rnics
lists devices that are switched on and that SMC can use. --all adds functions
and slots that are switched off, and other PCI functions (without FIDs, only
other network adapters). It is an error if DEVICE does not exist, or if the
options exclude it. Any user may list devices; -e and -d require root.

LISTING ON IBM Z
  There is a row for each network interface of a PCI function, with -I for each
  port of its RDMA device. Only --json has devices that are not on PCI.

  FID      function ID
  Power    1 on, 0 off
  PCI_ID   PCI address
  PCHID    physical channel ID; virtual one (VCHID) for ISM
  Type     name of the feature; with -r vendor:device
  PFT      type of PCI function: ROC, ROC2, ISM, NETH, NETD; with -r the number
  VF, VFN  virtual function: y or n; with -r its number
  PPrt     port of the adapter, counted from 0
  IPrt     port of the RDMA device, counted from 1
  PNET_ID  ID of the physical network; * if it comes from the PNET table
           (see smc_pnet) and not from firmware
  Net-Dev  network interface
  IB-Dev   RDMA device

LISTING ELSEWHERE
  There is a row for each port of an RDMA device, and one for each other device.
  -I has no effect: interfaces and RDMA devices are in the same row.

  IB-Dev   RDMA device; n/a without one, for example if its driver is not loaded
  Port     port of the RDMA device, counted from 1
  State    ACTIVE, DOWN, INIT, ARMED; off for a slot that is switched off
  SMC      transports that can use it: R for SMC-R, Rv1 or Rv2 if all its GIDs
           are of RoCE v1 or v2 (soft-RoCE has v2 only), D for SMC-D, - for none
           (iWARP, InfiniBand, no RDMA device; an ivshmem device without driver)
  Type     the adapter, or its driver; with -r vendor:device. fabric is memory
           that guests of a KVM host share for SMC-D; ivshmem would be, if
           smckit's module used it
  PCI_ID   PCI address; for a slot that is switched off, without the function
  PNET_ID  as above
  Net-Dev  network interface of the port

SWITCHING
  On IBM Z, -e and -d switch a PCI function; -d also deconfigures it in the
  partition. Elsewhere only hot-plug slots can be switched, with all functions
  in the slot. smc_rnics does not switch slots without a RoCE or ISM device. If
  the device is in the wanted state already, a line says so, and the exit status
  is 0.

JSON
  {"schema": 2, "has_zpci": …, "devices": [{"kind", "device", "model", "driver",
  "firmware", "node_type", "node_guid", "software", "pnet_id", "pnet_id_origin",
  "pci", "zpci", "slot", "ism", "ivshmem", "ports", "netdevs"}]}

  Unknown values are left out, and PNET IDs that are not set. IDs that are
  usually hexadecimal are strings without 0x. kind is roce, rdma (an RDMA device
  that SMC-R cannot use), ism, other or off; pnet_id_origin is table or
  firmware.

  With -e and -d the document is {"schema": 2, "fid", "slot_name", "power",
  "changed"}.

EXIT STATUS
  0  done, also if nothing had to be done or there is nothing to list
  1  failed
  2  the command line is wrong`

const example = `  # devices that SMC can use
  smc_rnics

  # all devices, also those that are switched off, with RDMA devices and ports
  smc_rnics -a -I

  # one device, by FID, by name, by interface
  smc_rnics 8ca
  smc_rnics mlx5_0
  smc_rnics eth0

  # switch on the function with FID 8ca; did that change anything?
  smc_rnics -e 8ca --json

  # interfaces of ports that are up, and their PNET IDs
  smc_rnics --json | jq -r '.devices[].ports[] | select(.state == "ACTIVE") | [.netdev, .pnet_id] | @tsv'`
