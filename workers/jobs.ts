// The pool's functions, one row each.
import { parseKubeconfig } from '../src/adapters/kube/kubeconfig.ts';
import { serveJobs } from '../src/jobs.ts';

export default serveJobs({
  parseKubeconfig: ({ upload, now }) => parseKubeconfig(upload, now),
});
