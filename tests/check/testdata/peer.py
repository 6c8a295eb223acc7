# SPDX-License-Identifier: Apache-2.0
"""A server of TCP that is none of ours, or pretends to be: says what its second argument holds, and ends or does not."""
import socket
import sys

listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
says, lasts = sys.argv[2].encode().decode("unicode_escape").encode(), sys.argv[3] == "lasts"
while True:
    client, _ = listener.accept()
    client.recv(len("smc_chk 1 client\n"), socket.MSG_WAITALL)
    client.sendall(says)
    while lasts and client.recv(65536):
        pass
    client.close()
