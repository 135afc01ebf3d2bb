// views.js - the views of an environment, in the order of the navigation, by their name in the address.
import { Batches } from "./batches.jsx";
import { Deployments } from "./deployments.jsx";
import { Gateways } from "./gateways.jsx";
import { Limits } from "./limits.jsx";
import { Overview } from "./overview.jsx";
import { Queues } from "./queues.jsx";
import { RunView } from "./run_view.jsx";
import { Schedules } from "./schedules.jsx";
import { Test } from "./test.jsx";
import { TokensView } from "./tokens.jsx";
import { Variables } from "./variables.jsx";
import { Waitpoints } from "./waitpoints.jsx";
import { Workers } from "./workers.jsx";

export const views = {
  overview: { label: "Overview", icon: "overview", View: Overview },
  runs: { label: "Runs", icon: "runs", View: RunView },
  test: { label: "Test", icon: "test", View: Test },
  batches: { label: "Batches", icon: "batches", View: Batches },
  queues: { label: "Queues", icon: "queues", View: Queues },
  limits: { label: "Limits", icon: "limits", View: Limits },
  schedules: { label: "Schedules", icon: "schedules", View: Schedules },
  waitpoints: { label: "Waitpoints", icon: "waitpoints", View: Waitpoints },
  variables: { label: "Variables", icon: "variables", View: Variables },
  deployments: { label: "Deployments", icon: "deployments", View: Deployments },
  workers: { label: "Workers", icon: "workers", View: Workers },
  tokens: { label: "Keys and tokens", icon: "tokens", View: TokensView },
  gateways: { label: "Gateways", icon: "gateways", View: Gateways },
};
