// tokens.jsx - keys of the environment and tokens of the user, by name and last use.
//
// They are created and revoked on the gateway's machine; the only exception is an approved CLI login.
import { useQuery } from "../lib/query.js";
import { session } from "../lib/session.js";
import { Loading, Page, Problem, Table, Time } from "../ui/basic.jsx";

export function Tokens({ place }) {
  const tokens = useQuery(["tokens"], () => session.personal("GET", "/api/v1/tokens"));
  const keys = useQuery([place.ref, place.env, "keys"], () => session.personal("GET", `/api/v1/projects/${encodeURIComponent(place.ref)}/${encodeURIComponent(place.env)}/keys`));
  const used = ({ lastUsedAt }) => lastUsedAt ? <Time at={lastUsedAt} relative /> : <span class="dim">not since gateway start</span>;
  return (
    <Page title="Keys and tokens">
      <section class="panel" aria-label="Secret keys"><header><h2>Secret keys of {place.env}</h2></header>
        {keys.error ? <Problem error={keys.error} retry={keys.reload} /> : !keys.data ? <Loading /> : <Table label="Keys" rows={keys.data.data} rowKey="name" columns={[
          ["Key", (one) => <code>{one.name}</code>], ["Expires", (one) => one.expiresAt ? <Time at={one.expiresAt} /> : <span class="dim">never</span>], ["Last used", used, "number"],
        ]} />}
        <p class="pad dim">On the gateway's machine: <code>runcast keys</code> prints the keys, <code>runcast keys rotate {place.env}</code> creates a new one.</p></section>
      <section class="panel" aria-label="Personal access tokens"><header><h2>Your personal access tokens</h2></header>
        {tokens.error ? <Problem error={tokens.error} retry={tokens.reload} /> : !tokens.data ? <Loading /> : <Table label="Tokens" rows={tokens.data.data} columns={[
          ["Name", (one) => <>{one.name || <span class="dim">unnamed</span>} {one.isThis && <em class="mini current">this tab</em>}</>], ["Id", (one) => <code class="dim">{one.id}</code>], ["Created", (one) => <Time at={one.createdAt} />, "number"], ["Expires", (one) => one.expiresAt ? <Time at={one.expiresAt} /> : <span class="dim">never</span>, "number"], ["Last used", used, "number"],
        ]} />}
        <p class="pad dim">On the gateway's machine: <code>runcast token create --user EMAIL</code> creates a token, <code>runcast token revoke ID</code> revokes one immediately.</p></section>
    </Page>
  );
}
