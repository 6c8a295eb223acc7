// SPDX-License-Identifier: GPL-2.0-only
/* Taking a connection out of TCP's accept queue in a worker. */

#include <net/inet_connection_sock.h>
#include <net/inet_hashtables.h>
#include <net/tcp.h>

#include "../trylock.h"
#include "listener.h"

/* Takes the first connection out of the queue, which is not empty. */
static struct sock *dequeue(struct sock *lsk, struct request_sock **req)
{
	struct request_sock_queue *queue = &inet_csk(lsk)->icsk_accept_queue;
	struct sock *sk;

	sock_owned_by_me(lsk);
	*req = reqsk_queue_remove(queue, lsk);
	sk = (*req)->sk;
	if (!tcp_rsk(*req)->tfo_listener)
		return sk;
	/* Fast Open: TCP still needs the request if the last ACK of its handshake has not come. */
	spin_lock_bh(&queue->fastopenq.lock);
	if (tcp_rsk(*req)->tfo_listener) {
		(*req)->sk = NULL;
		*req = NULL;
	}
	spin_unlock_bh(&queue->fastopenq.lock);
	return sk;
}

/**
 * smc_listen_dequeue() - accept() for a worker
 * @lsock: the listener
 * @sock: an empty socket, gets the connection
 *
 * TCP's accept() sleeps on the listener's lock, which an application may hold for any time, see
 * smc_sock_trylock(). The connection belongs to no control group, because the worker belongs to none. May sleep,
 * but waits for no application.
 *
 * Return: 0; -EAGAIN if the queue is empty or TCP does not listen any more; -EBUSY if a thread holds
 * the listener's lock.
 */
int smc_listen_dequeue(struct socket *lsock, struct socket *sock)
{
	struct sock *lsk = lsock->sk, *sk = NULL;
	struct request_sock *req = NULL;

	might_sleep();
	if (!smc_sock_trylock(lsk))
		return -EBUSY;
	if (lsk->sk_state == TCP_LISTEN && !reqsk_queue_empty(&inet_csk(lsk)->icsk_accept_queue))
		sk = dequeue(lsk, &req);
	release_sock(lsk);
	if (!sk)
		return -EAGAIN;
	if (req)
		sock_gen_put(req_to_sk(req)); /* as reqsk_put(), which modules cannot call on all kernels */
	smc_compat_init_csk_locks(sk);
	smc_sock_copy_zc(lsock, sock);
	lock_sock(sk); /* no application has this socket yet */
	sock_graft(sk, sock);
	sock->state = SS_CONNECTED;
	release_sock(sk);
	return 0;
}
