// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registration of buffers with adapters (docs/protocol.md, 6), by a work request in the send queue, where it takes its
 * turn. After a lost packet, soft-RoCE executes all later work requests again, registrations too, finds that the buffer
 * is registered, and fails the queue pair. With soft-RoCE, registrations have a queue pair of their own, which is
 * connected to itself and sends nothing.
 */

#include <linux/moduleparam.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "buf.h"
#include "link.h"

/* How long soft-RoCE may take. */
#define REG_TIMEOUT (5 * HZ)

static bool rxe_in_turn;
module_param(rxe_in_turn, bool, 0444);
MODULE_PARM_DESC(rxe_in_turn, "soft-RoCE registers buffers as adapters of hardware do, for tests");

static void reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct smc_link_reg_qp *reg = container_of(wc->wr_cqe, struct smc_link_reg_qp, cqe);

	reg->status = wc->status;
	complete(&reg->done);
}

static int connect_reg_qp(struct smc_link *link)
{
	struct ib_qp *qp = link->reg_qp.qp;
	struct ib_qp_attr attr = {
		.port_num = link->path.port,
		.path_mtu = link->path.mtu_code,
		.dest_qp_num = qp->qp_num,
	};
	int rc;

	smc_link_address(link, &attr.ah_attr, link->path.gid, link->path.mac, false);
	attr.qp_state = IB_QPS_INIT;
	rc = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS | IB_QP_PORT);
	if (rc)
		return rc;
	attr.qp_state = IB_QPS_RTR;
	rc = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			  IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (rc)
		return rc;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

/*
 * smc_link_reg_qp_new() - makes the registration QP of a link that has its completion queue, if the adapter needs one.
 * May sleep. Return: 0 or a negative errno.
 */
int smc_link_reg_qp_new(struct smc_link *link)
{
	struct ib_qp_init_attr init = {
		.send_cq = link->cq,
		.recv_cq = link->cq,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp *qp;

	might_sleep();
	if (link->path.dev->ib->ops.driver_id != RDMA_DRIVER_RXE || rxe_in_turn)
		return 0;
	link->reg_qp.cqe.done = reg_done;
	init_completion(&link->reg_qp.done);
	qp = ib_create_qp(link->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	link->reg_qp.qp = qp;
	return connect_reg_qp(link);
}

/* Posts to the registration QP, and waits for the completion. */
static int post_to_reg_qp(struct smc_link *link, struct ib_reg_wr *wr)
{
	struct smc_link_reg_qp *reg = &link->reg_qp;

	lockdep_assert_held(&link->lock);
	wr->wr.wr_cqe = &reg->cqe;
	reg->status = IB_WC_GENERAL_ERR;
	reinit_completion(&reg->done);
	if (!smc_link_usable(link))
		return -ENOTCONN;
	if (smc_rdma_post_reg(reg->qp, &link->limits, wr) || !wait_for_completion_timeout(&reg->done, REG_TIMEOUT) ||
	    reg->status != IB_WC_SUCCESS) {
		smc_link_fail(link, SMC_LINK_NOT_REGISTERED, reg->status);
		return -ENOTCONN;
	}
	return 0;
}

/* Posts to the send queue. What is sent afterwards is sent after the registration. */
static int post_to_sq(struct smc_link *link, struct smc_buf_map *map, struct ib_reg_wr *wr)
{
	u64 last;
	int rc = 0;

	lockdep_assert_held(&link->lock);
	spin_lock_bh(&link->sq_lock);
	last = link->sq_posted + 1;
	if (!smc_link_usable(link)) {
		rc = -ENOTCONN;
	} else if (last - link->sq_done > link->sq_size) {
		rc = -EAGAIN;
	} else {
		wr->wr.wr_cqe = smc_link_signal(link, last);
		link->sq_posted = last;
		if (smc_rdma_post_reg(link->qp, &link->limits, wr)) {
			smc_link_fail(link, SMC_LINK_NOT_POSTED, 0);
			rc = -ENOTCONN;
		}
		WRITE_ONCE(map->busy, last); /* until then the MR stays */
	}
	spin_unlock_bh(&link->sq_lock);
	return rc;
}

static int post_registration(struct smc_link *link, struct smc_buf_map *map)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = map->mr,
		.key = map->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | (map->dir == DMA_BIDIRECTIONAL ? IB_ACCESS_REMOTE_WRITE : 0),
	};

	lockdep_assert_held(&link->lock);
	smc_rdma_delay_reg();
	return link->reg_qp.qp ? post_to_reg_qp(link, &wr) : post_to_sq(link, map, &wr);
}

/*
 * smc_link_register() - registers a buffer with the adapter of a link, if that is necessary. Return: 0,
 * -EAGAIN if there is no room in the send queue, -ENOTCONN if the link is down.
 */
int smc_link_register(struct smc_link *link, struct smc_rdma_buf *buf)
{
	struct smc_buf_map *map = smc_rdma_buf_map_of(buf, link);
	int rc = 0;

	might_sleep();
	/* A link that is down is about to end, and its maps with it. */
	mutex_lock(&link->lock);
	if (link->gone || !smc_link_usable(link))
		rc = -ENOTCONN;
	else
		smc_rdma_buf_hand_over(buf, link);
	if (!rc && map->mr && !map->registered)
		rc = post_registration(link, map);
	if (!link->gone)
		map->registered = !rc; /* the slot of a link that is gone may be another's */
	mutex_unlock(&link->lock);
	return rc;
}
