// SPDX-License-Identifier: GPL-2.0-only
/* Limits of a device, and the test parameter that lowers it. */

#include <linux/delay.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_cache.h>

#include "group.h"
#include "limits.h"

/*
 * Entries of rdma_test. A limit lowers what the device reports, and is enforced when an object is created, as a device
 * would. 0 means that the entry is not set; inline_data may be 0, so 1 is added to its value.
 */
enum entry {
	QP_WR,
	CQE,
	RECV_SGE,
	INLINE_DATA,
	REG_PAGES,
	VECTORS,
	REFUSE_CQ,	/* this many first requests of each link fail with ENOMEM */
	REFUSE_QP,
	REFUSE_MR,
	DELAY_MR,	/* milliseconds that the creation of a memory region takes */
	REFUSE_REG,	/* as REFUSE_MR, work requests that register a buffer */
	DELAY_REG,	/* milliseconds before such a work request is posted */
	DELAY_STOP,	/* milliseconds that it takes to stop a link */
	FIRST_GID,	/* the places of a port's GID table below this are empty */
	DELAY_GID,	/* milliseconds from when a port is active until it has GIDs */
	FAIL_QP,	/* when it is written: the number of a link, whose queue pair goes into error */
	N_ENTRIES
};

static const char *const names[N_ENTRIES] = {
	[QP_WR] = "qp_wr",
	[CQE] = "cqe",
	[RECV_SGE] = "recv_sge",
	[INLINE_DATA] = "inline_data",
	[REG_PAGES] = "reg_pages",
	[VECTORS] = "vectors",
	[REFUSE_CQ] = "refuse_cq",
	[REFUSE_QP] = "refuse_qp",
	[REFUSE_MR] = "refuse_mr",
	[DELAY_MR] = "delay_mr",
	[REFUSE_REG] = "refuse_reg",
	[DELAY_REG] = "delay_reg",
	[DELAY_STOP] = "delay_stop",
	[FIRST_GID] = "first_gid",
	[DELAY_GID] = "delay_gid",
	[FAIL_QP] = "fail_qp",
};

/* Each is read alone with READ_ONCE(); writers hold the module's parameter lock. */
static u32 entries[N_ENTRIES];

static int parse_test_entry(char *text, u32 values[N_ENTRIES])
{
	char *name = strsep(&text, "=");
	int i = match_string(names, N_ENTRIES, name), rc;

	if (i < 0 || !text)
		return -EINVAL;
	rc = kstrtou32(text, 10, &values[i]);
	if (rc)
		return rc;
	if (values[i] > 1000000)
		return -ERANGE;
	if (i == INLINE_DATA)
		values[i]++;
	return 0;
}

static int set_test(const char *text, const struct kernel_param *kp)
{
	char *copy = kstrdup(text ?: "", GFP_KERNEL), *rest, *one;
	u32 values[N_ENTRIES] = {};
	int i, rc = 0;

	if (!copy)
		return -ENOMEM;
	rest = strim(copy);
	while (!rc && (one = strsep(&rest, ",")))
		if (*one)
			rc = parse_test_entry(one, values);
	for (i = 0; i < N_ENTRIES && !rc; i++)
		WRITE_ONCE(entries[i], values[i]);
	if (!rc && values[FAIL_QP])
		smc_lgr_rdma_fail_qp(values[FAIL_QP]);
	kfree(copy);
	return rc;
}

static int get_test(char *text, const struct kernel_param *kp)
{
	int i, n = 0;

	for (i = 0; i < N_ENTRIES; i++)
		if (entries[i])
			n += scnprintf(text + n, PAGE_SIZE - n, "%s%s=%u", n ? "," : "", names[i],
				       entries[i] - (i == INLINE_DATA));
	return n + scnprintf(text + n, PAGE_SIZE - n, "\n");
}

static const struct kernel_param_ops test_ops = { .set = set_test, .get = get_test };

module_param_cb(rdma_test, &test_ops, NULL, 0644);
MODULE_PARM_DESC(rdma_test, "for tests only: lowers what RDMA devices offer, as kernel/README.md describes");

static u32 lowered_limit(u32 reported, enum entry e)
{
	u32 value = READ_ONCE(entries[e]);

	return value ? min(reported, value) : reported;
}

/* smc_rdma_limits_read() - reads what a device offers. Any context. */
void smc_rdma_limits_read(const struct ib_device *ib, struct smc_rdma_limits *limits)
{
	u32 inline_data = READ_ONCE(entries[INLINE_DATA]);

	*limits = (struct smc_rdma_limits){
		.qp_wr = lowered_limit(ib->attrs.max_qp_wr, QP_WR),
		.cqe = lowered_limit(ib->attrs.max_cqe, CQE),
		.recv_sge = lowered_limit(ib->attrs.max_recv_sge, RECV_SGE),
		.inline_data = inline_data ? inline_data - 1 : U32_MAX,
		.reg_pages = lowered_limit(ib->attrs.max_fast_reg_page_list_len, REG_PAGES),
		.vectors = lowered_limit(ib->num_comp_vectors, VECTORS),
		.refuse = {
			[SMC_RDMA_REFUSE_CQ] = ATOMIC_INIT(READ_ONCE(entries[REFUSE_CQ])),
			[SMC_RDMA_REFUSE_QP] = ATOMIC_INIT(READ_ONCE(entries[REFUSE_QP])),
			[SMC_RDMA_REFUSE_MR] = ATOMIC_INIT(READ_ONCE(entries[REFUSE_MR])),
			[SMC_RDMA_REFUSE_REG] = ATOMIC_INIT(READ_ONCE(entries[REFUSE_REG])),
		},
	};
}

static bool test_refuses(struct smc_rdma_limits *limits, enum smc_rdma_refusal what)
{
	return atomic_dec_if_positive(&limits->refuse[what]) >= 0;
}

/* Sleeps for the milliseconds of an entry. */
static void test_delays(enum entry e)
{
	u32 delay = READ_ONCE(entries[e]);

	if (delay)
		msleep(delay);
}

/*
 * smc_rdma_alloc_cq() - creates a completion queue that softirqs poll, on a vector that the device has.
 * Return: the queue or an ERR_PTR().
 */
struct ib_cq *smc_rdma_alloc_cq(struct ib_device *ib, struct smc_rdma_limits *limits, void *context, u32 cqe,
				unsigned int vector)
{
	might_sleep();
	if (cqe > limits->cqe)
		return ERR_PTR(-EINVAL);
	if (test_refuses(limits, SMC_RDMA_REFUSE_CQ))
		return ERR_PTR(-ENOMEM);
	return ib_alloc_cq(ib, context, cqe, vector, IB_POLL_SOFTIRQ);
}

/*
 * smc_rdma_create_qp() - creates a queue pair, and sets init->cap to what it has. Return: the queue pair or
 * an ERR_PTR().
 */
struct ib_qp *smc_rdma_create_qp(struct ib_pd *pd, struct smc_rdma_limits *limits, struct ib_qp_init_attr *init)
{
	struct ib_qp *qp;

	might_sleep();
	if (max(init->cap.max_send_wr, init->cap.max_recv_wr) > limits->qp_wr || init->cap.max_recv_sge > limits->recv_sge)
		return ERR_PTR(-EINVAL);
	if (test_refuses(limits, SMC_RDMA_REFUSE_QP))
		return ERR_PTR(-ENOMEM);
	init->cap.max_inline_data = min(init->cap.max_inline_data, limits->inline_data);
	qp = ib_create_qp(pd, init);
	init->cap.max_inline_data = min(init->cap.max_inline_data, limits->inline_data);
	return qp;
}

/*
 * smc_rdma_alloc_mr() - creates a memory region of some pages. With adapters that is a command to the firmware, which
 * may take long: no lock that a handshake needs is held. Return: the region or an ERR_PTR().
 */
struct ib_mr *smc_rdma_alloc_mr(struct ib_pd *pd, struct smc_rdma_limits *limits, u32 pages)
{
	might_sleep();
	test_delays(DELAY_MR);
	if (pages > limits->reg_pages)
		return ERR_PTR(-EINVAL);
	if (test_refuses(limits, SMC_RDMA_REFUSE_MR))
		return ERR_PTR(-ENOMEM);
	return ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, pages);
}

/* smc_rdma_delay_reg() - sleeps for delay_reg of rdma_test, before a registration is posted. */
void smc_rdma_delay_reg(void)
{
	might_sleep();
	test_delays(DELAY_REG);
}

/* smc_rdma_delay_stop() - sleeps for delay_stop of rdma_test, while a link is stopped. */
void smc_rdma_delay_stop(void)
{
	might_sleep();
	test_delays(DELAY_STOP);
}

/* smc_rdma_post_reg() - posts a work request that registers a buffer. Any context. Return: 0 or a negative errno. */
int smc_rdma_post_reg(struct ib_qp *qp, struct smc_rdma_limits *limits, const struct ib_reg_wr *wr)
{
	if (test_refuses(limits, SMC_RDMA_REFUSE_REG))
		return -ENOMEM;
	return ib_post_send(qp, &wr->wr, NULL);
}

/*
 * smc_rdma_get_gid() - reads an entry of a port's GID table. Any context. Return: the entry, for rdma_put_gid_attr(),
 * or an ERR_PTR() if the place is empty.
 */
const struct ib_gid_attr *smc_rdma_get_gid(struct ib_device *ib, u32 port, int index)
{
	u32 first = READ_ONCE(entries[FIRST_GID]);

	/* The table is moved, as there are seldom as many addresses as it has places. */
	if (index < (int)first)
		return ERR_PTR(-ENODATA);
	return rdma_get_gid_attr(ib, port, index - (int)first);
}

/*
 * smc_rdma_gid_delay() - returns jiffies from when a port is active until it has GIDs; 0 without rdma_test. Any
 * context.
 */
unsigned long smc_rdma_gid_delay(void)
{
	return msecs_to_jiffies(READ_ONCE(entries[DELAY_GID]));
}
