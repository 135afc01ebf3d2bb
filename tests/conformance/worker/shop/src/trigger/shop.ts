// The tasks of a shop, for the dashboard's tests. An order has children, logs, metadata and a stream; expensive orders are
// refused. A refund waits for a token, and one task exits its process.
import { concurrencyLimit, logger, metadata, queue, schedules, schemaTask, streams, tags, task, wait } from "@trigger.dev/sdk";
import { z } from "zod";

const payments = queue({ name: "payments", concurrencyLimit: 2 });

export const charge = task({
  id: "charge-card",
  queue: payments,
  retry: { maxAttempts: 2, minTimeoutInMs: 300, factor: 1 },
  run: async ({ order, amount }: { order: string; amount: number }, { ctx }) => {
    logger.info("charging", { order, amount, attempt: ctx.attempt.number });
    if (amount > 900) throw new Error(`the bank refuses ${amount} €`);
    await wait.for({ seconds: 0.2 });
    return { receipt: `r-${order}` };
  },
});

export const email = task({
  id: "send-email",
  run: async ({ to }: { to: string }) => {
    const sent = await logger.trace("smtp", async (span) => {
      span.setAttribute("to", to);
      return { accepted: [to] };
    });
    logger.warn("the mail server is slow", { ms: 120 });
    return sent;
  },
});

export const order = schemaTask({
  id: "process-order",
  schema: z.object({
    order: z.string().describe("number of the order"),
    amount: z.number().min(1).describe("in euros"),
    to: z.string().email(),
    express: z.boolean().optional(),
  }),
  run: async ({ order, amount, to }) => {
    metadata.set("progress", 0).set("customer", { to });
    await tags.add(`order_${order}`);
    const { receipt } = await charge.triggerAndWait({ order, amount }).unwrap();
    metadata.set("progress", 50);
    await streams.append("steps", `charged ${receipt}\n`);
    await email.batchTriggerAndWait([{ payload: { to } }, { payload: { to: "warehouse@example.com" } }]);
    metadata.set("progress", 100);
    await streams.append("steps", "mailed\n");
    return { receipt, delivered: false };
  },
});

export const approval = task({
  id: "approve-refund",
  run: async ({ order }: { order: string }) => {
    const token = await wait.createToken({ timeout: "1h", tags: ["refund", `order_${order}`] });
    const answer = await wait.forToken<{ approved: boolean }>(token);
    return { order, ...(answer.ok ? answer.output : { approved: false }) };
  },
});

export const slow = task({
  id: "rebuild-index",
  run: async ({ seconds = 60 }: { seconds?: number }) => {
    for (let i = 0; i < seconds; i++) {
      metadata.set("done", i);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    return { seconds };
  },
});

const carriers = concurrencyLimit({ name: "carriers", total: 2, perKey: 1 });

export const parcel = task({
  id: "ship-parcel",
  concurrency: [{ total: 5 }, carriers],
  run: async ({ seconds = 60 }: { seconds?: number }) => {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    return { seconds };
  },
});

export const leaver = task({
  id: "exit-process",
  retry: { maxAttempts: 2, minTimeoutInMs: 4000, factor: 1, randomize: false },
  run: async ({ code }: { code: number }) => {
    await new Promise((resolve) => setTimeout(resolve, 1500)); // the span of the attempt is sent before the process ends
    process.exit(code);
  },
});

export const report = schedules.task({
  id: "daily-report",
  cron: { pattern: "0 6 * * *", timezone: "Europe/Berlin" },
  run: async ({ timestamp }) => ({ at: timestamp }),
});
