// build_help.jsx - the page that the CLI links to after a failed build: the error and the next steps.
import { addressOf } from "../lib/place.js";
import { Copy, Page } from "../ui/basic.jsx";

export function BuildHelp({ place }) {
  const text = place.query.get("q") ?? "", view = (name) => addressOf({ ...place, view: name, id: undefined, query: {} });
  return (
    <Page title="Build failed" subtitle="The CLI could not build your project">
      {text ? <section class="failure" aria-label="Error"><header><h2>Message of the CLI</h2><Copy text={text} label="Copy error" /></header><pre class="stack-trace wrap" tabIndex={0}>{text}</pre></section>
        : <p class="dim">The link has no message. The terminal shows it.</p>}
      <section class="panel" aria-label="Next steps"><header><h2>Next steps</h2></header><div class="body stack">
        <p>Fix the file that the message names. <code>trigger.dev dev</code> builds again when you save it.</p>
        <p class="prose">Meanwhile, runs use the last version that was built: see <a href={view("workers")}>workers</a> and <a href={view("deployments")}>deployments</a>.</p>
      </div></section>
    </Page>
  );
}
