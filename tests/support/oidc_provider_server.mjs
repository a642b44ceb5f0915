// A real OpenID provider (npm oidc-provider) over TLS, which signs everybody in as the test says.
// In: a JSON line of settings on stdin. Out: "ready PORT" on stdout; further JSON lines on stdin change settings.
import { createRequire } from 'node:module';
import { createServer } from 'node:https';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [folder, certificate, key] = process.argv.slice(2);
const { default: Provider } = await import(createRequire(`${folder}/`).resolve('oidc-provider'));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let settings = JSON.parse((await lines.next()).value);

const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `https://127.0.0.1:${server.address().port}`;

function build() {
  return new Provider(issuer, {
    clients: settings.clients,
    jwks: settings.jwks,
    cookies: { keys: ['a key of a test'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'offline_access', 'email', 'groups'],
    conformIdTokenClaims: settings.conformIdTokenClaims,
    features: { claimsParameter: { enabled: true }, devInteractions: { enabled: false }, userinfo: { enabled: true } },
    pkce: { required: () => true },
    ttl: { IdToken: 300, AuthorizationCode: 60, AccessToken: 60, Grant: 600, Interaction: 600, Session: 600 },
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id, ...settings.claims }) }),
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId,
      });
      grant.addOIDCScope('openid email groups');
      grant.addOIDCClaims(['groups', 'email', 'email_verified']);
      await grant.save();
      return grant;
    },
  });
}

let provider = build();
server.on('request', async (request, response) => {
  if (request.url.startsWith('/interaction/')) {
    await provider.interactionFinished(request, response, { login: { accountId: settings.subject } });
    return;
  }
  provider.callback()(request, response);
});
console.log(`ready ${server.address().port}`);
for await (const line of lines) {
  const before = settings;
  settings = JSON.parse(line);
  // A new provider has forgotten its tokens: claims are read when they are asked for, and need none.
  const kept = ['clients', 'jwks', 'conformIdTokenClaims'];
  if (kept.some((name) => JSON.stringify(before[name]) !== JSON.stringify(settings[name]))) provider = build();
  console.log('changed');
}
process.exit(0);
