"""The search: tasks, design spaces, proposals, cost model, budget.

Knows TVM and XGBoost; knows no SQL, no Ray, no HTTP.
"""
