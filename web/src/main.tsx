/* main.tsx - starts the page. */

import { render } from 'preact';
import { boot, has_steps, login, needs_token, problem, readHash, start, state } from './state';
import { installKeys } from './keys';
import { Failed, Loading, Shell, Token, Waiting } from './parts/shell';
import { Now } from './views/now';
import { HeatView } from './views/heat';
import { StepView } from './views/step';

function Page() {
  const view = state.value.view;
  let body;
  if (needs_token.value)
    body = <Token />;
  else if (!boot.value)
    body = problem.value && !problem.value.not_yet ? <Failed /> : <Loading />;
  else if (!has_steps.value)
    body = <Waiting />;
  else
    body = view === 'heat' ? <HeatView /> : view === 'step' ? <StepView /> : <Now />;
  return <Shell>{body}</Shell>;
}

/* "#token=T" is given once: it becomes a cookie and leaves the address bar. */
const token = /^#token=(.+)$/.exec(location.hash);
if (token) {
  history.replaceState(null, '', '#/now');
  void login(decodeURIComponent(token[1]!)).then((error) => { if (error) needs_token.value = true; });
}
readHash();
window.addEventListener('popstate', readHash);
window.addEventListener('hashchange', readHash);
installKeys();
if (!token)
  start();
render(<Page />, document.getElementById('page')!);
