import { fromPath, overview } from 'portico';
import { rows } from '../generated/hub.ts';

export { rows };

const ofPath = { owner: fromPath('owner'), repo: fromPath('repo') };

export const overviews = [
  overview(
    '/bff/v1/repos/:owner/:repo/overview',
    {
      repository: { read: rows.reposGet, params: ofPath, required: true },
      issues: { read: rows.issuesListForRepo, params: ofPath, query: { state: 'open', per_page: 2 } },
      people: { read: rows.reposListContributors, params: ofPath },
    },
    ({ repository, issues, people }) => ({
      stars: repository.stargazers_count,
      titles: issues?.map(({ title }) => title),
      logins: people?.map(({ login }) => login),
    }),
  ),
];
